import { SandboxError } from "@sandpiper/core";
import type { SessionEvent } from "@sandpiper/protocol";
import type { LiveSandbox } from "../service/live-sandbox.ts";
import { closeCodes } from "../socket/message-socket.ts";
import { Session } from "./session.ts";
import type { SessionContext } from "./session-context.ts";
import { errorText, statusUpdate } from "./session-event.ts";

export interface AttachRequest {
  readonly id: string;
  readonly query: URLSearchParams;
}

/** `WS /attach/<id>`: attaches a client to a sandbox, unless another one is. */
export function attachSession(context: SessionContext, { id, query }: AttachRequest): void {
  const { socket, principal, dependencies, sessions, logger, audit } = context;
  const refuse = (event: SessionEvent) => {
    socket.send(event);
    socket.close(closeCodes.normal, "refused");
  };
  let live: LiveSandbox;
  try {
    live = dependencies.service.open(principal, id);
  } catch (thrown) {
    audit.note("startProcess", id, SandboxError.from(thrown));
    refuse(refusal(thrown));
    return;
  }
  const slot = sessions.slotOf(live);
  if (slot.session !== undefined && !slot.session.isLeaving) {
    const wantsTakeover = query.get("takeover") === "true";
    if (!wantsTakeover || principal.kind !== "sandbox") {
      refuse(statusUpdate("SANDBOX_IN_USE", { message: inUse(id, wantsTakeover) }));
      return;
    }
  }
  slot.session?.detach();
  const session = new Session({ socket, slot, logger, audit });
  socket.onMessage((data, isBinary) => session.receive(data, isBinary));
  session.begin();
}

function refusal(thrown: unknown): SessionEvent {
  const error = SandboxError.from(thrown);
  const isMissing = error.code === "not_found" || error.code === "gone";
  const message = errorText(error);
  return isMissing ? statusUpdate("SANDBOX_NOT_FOUND", { message }) : { event: "error", message };
}

function inUse(id: string, wantsTakeover: boolean): string {
  const hint = wantsTakeover ? "to take it over, connect with its own token" : "wait until that client has left";
  return `another client is attached to sandbox ${id} (${hint})`;
}
