import { SandboxError } from "@sandpiper/core";
import type { ClientMessage } from "@sandpiper/protocol";
import { requireAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { EventFeed, FeedQuery } from "../sandboxes/event-feed.ts";
import type { SocketStream, StreamEnd } from "./socket-stream.ts";

type OpenEvents = Extract<ClientMessage, { kind: "events" }>;

/** Sends the node's events that the client may see. */
export async function runEventStream(
  stream: SocketStream,
  message: OpenEvents,
  { feed, principal }: { readonly feed: EventFeed; readonly principal: Principal },
): Promise<StreamEnd | undefined> {
  const query = queryOf(message, principal);
  stream.opened();
  for await (const event of feed.follow(query, stream.signal)) {
    await stream.item(event);
    if (stream.signal.aborted) return undefined;
  }
  return {};
}

function queryOf({ after, replay = false, sandbox: sandboxId }: OpenEvents, principal: Principal): FeedQuery {
  const { tenant } = principal;
  if (principal.kind === "sandbox") {
    if (sandboxId !== undefined && sandboxId !== principal.sandboxId) throw othersEvents(sandboxId);
    return { tenant, sandboxId: principal.sandboxId, after, replay };
  }
  requireAccess(principal, "read", { readOnly: true });
  return { tenant: principal.scopes.includes("admin") ? undefined : tenant, sandboxId, after, replay };
}

function othersEvents(sandbox: string): SandboxError {
  return new SandboxError("no_such_sandbox", {
    message: `this token does not give access to sandbox ${sandbox}`,
    hint: "a sandbox's token shows only the events of its own sandbox; use an API key for others",
  });
}
