import { type SandboxError, systemClock } from "@sandpiper/core";
import type { SandboxResource, SessionEvent } from "@sandpiper/protocol";
import { publicError } from "../http/error-response.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { closeCodes } from "../socket/message-socket.ts";
import { parseResume, type Resume } from "./output-cursor.ts";
import { Session, type SessionContext } from "./session.ts";
import { errorFields, statusUpdate } from "./session-event.ts";
import { serveRequests } from "./session-requests.ts";

export interface AttachRequest {
  readonly id: string;
  readonly query: URLSearchParams;
}

/** `WS /attach/<id>`: brings the sandbox to this node and attaches the client, unless another client is attached. */
export async function attachSession(context: SessionContext, { id, query }: AttachRequest): Promise<void> {
  const { socket, principal, sessions, logger, audit } = context;
  const refuse = (event: SessionEvent) => {
    socket.send(event);
    socket.close(closeCodes.normal, "refused");
  };
  const isTakeover = query.get("takeover") === "true";
  const takeover = isTakeover && principal.kind === "sandbox";
  let session: Session | undefined;
  serveRequests(socket, () => session);
  const startedAt = (context.dependencies.clock ?? systemClock).now();
  let live: LiveSandbox;
  let restored: SandboxResource | undefined;
  let resume: Resume | undefined;
  try {
    resume = parseResume(query);
    ({ live, restored } = await bring(context, id, takeover));
  } catch (thrown) {
    const error = publicError(thrown);
    await audit.note("startProcess", id, error);
    if (error.code === "internal") logger.error({ err: error }, "could not bring a sandbox to this node");
    refuse(error.reason === "sandbox_in_use" ? inUse(id, isTakeover) : refusal(error));
    return;
  }
  if (socket.isClosed) return;
  const slot = sessions.slotOf(live);
  if (slot.session !== undefined && !slot.session.isLeaving && !takeover) {
    refuse(inUse(id, isTakeover));
    return;
  }
  slot.session?.detach();
  session = new Session(context, slot);
  const { rolledBackTo } = restored ?? {};
  const isNew = rolledBackTo && new Date(rolledBackTo.at) >= startedAt;
  session.begin(isNew ? { rolledBackTo } : {}, resume);
}

/** Tells the client that the sandbox is being restored as soon as this is known. */
async function bring(
  { socket, principal, dependencies }: SessionContext,
  id: string,
  takeover: boolean,
): Promise<{ readonly live: LiveSandbox; readonly restored?: SandboxResource }> {
  const { access, locator } = dependencies;
  const running = access.running(principal, id, { readOnly: false });
  if (running !== undefined) return { live: running };
  const leaving = new AbortController();
  socket.closed.then(() => leaving.abort());
  const onWaiting = () => void socket.send(statusUpdate("SANDBOX_RESTORING"));
  const restored = await locator.bring(principal, id, { takeover, signal: leaving.signal, onWaiting });
  return { live: access.open(principal, id, { readOnly: false }), restored };
}

function refusal(error: SandboxError): SessionEvent {
  const isMissing = error.code === "not_found" || error.code === "gone";
  return isMissing ? statusUpdate("SANDBOX_NOT_FOUND", errorFields(error)) : { event: "error", ...errorFields(error) };
}

function inUse(id: string, wantsTakeover: boolean): SessionEvent {
  const hint = wantsTakeover ? "to take it over, connect with its own token" : "wait until that client has left";
  const message = `another client is attached to sandbox ${id} (${hint})`;
  return statusUpdate("SANDBOX_IN_USE", { message, reason: "sandbox_in_use" });
}
