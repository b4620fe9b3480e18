import { SandboxError } from "@sandpiper/core";
import type { ClientMessage } from "@sandpiper/protocol";
import { requireAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { EventLog, EventQuery } from "../records/event-log.ts";
import type { SocketStream, StreamEnd } from "./socket-stream.ts";

type OpenEvents = Extract<ClientMessage, { kind: "events" }>;

/** Sends the node's events that the client may see. */
export async function runEventStream(
  stream: SocketStream,
  message: OpenEvents,
  { events, principal }: { readonly events: EventLog; readonly principal: Principal },
): Promise<StreamEnd | undefined> {
  const query = queryOf(message, principal);
  stream.opened();
  for await (const event of events.follow(query, stream.signal)) {
    await stream.item(event);
    if (stream.signal.aborted) return undefined;
  }
  return {};
}

function queryOf({ after, sandbox: sandboxId }: OpenEvents, principal: Principal): EventQuery {
  const { tenant } = principal;
  if (principal.kind === "sandbox") {
    if (sandboxId !== undefined && sandboxId !== principal.sandboxId) throw othersEvents(sandboxId);
    return { tenant, sandboxId: principal.sandboxId, after };
  }
  requireAccess(principal, "read", { readOnly: true });
  return { tenant: principal.scopes.includes("admin") ? undefined : tenant, sandboxId, after };
}

function othersEvents(sandbox: string): SandboxError {
  return new SandboxError("no_such_sandbox", {
    message: `this token does not give access to sandbox ${sandbox}`,
    hint: "a sandbox's token shows only the events of its own sandbox; use an API key for others",
  });
}
