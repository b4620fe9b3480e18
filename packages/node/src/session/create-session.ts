import { publicError } from "../http/error-response.ts";
import { closeCodes } from "../socket/message-socket.ts";
import { createOptions } from "./create-options.ts";
import { Session, type SessionContext } from "./session.ts";
import { errorFields, statusUpdate } from "./session-event.ts";
import { serveRequests } from "./session-requests.ts";

/** `WS /create`: creates a sandbox and attaches the client to it. */
export async function createSession(context: SessionContext, query: URLSearchParams): Promise<void> {
  const { socket, principal, dependencies, sessions, logger, audit } = context;
  const { sandboxes, access } = dependencies;
  const leaving = new AbortController();
  socket.closed.then(() => leaving.abort());
  let session: Session | undefined;
  /** Resolves when the audit entry is written and the client has the id. */
  let noted: Promise<void> | undefined;
  serveRequests(socket, () => session);
  socket.send(statusUpdate("SANDBOX_CREATING"));
  try {
    const { id } = await sandboxes.create(principal, createOptions(query), {
      signal: leaving.signal,
      onId: (sandbox_id, token) => {
        noted = audit.note("createSandbox", sandbox_id).then(() => {
          socket.send({ event: "sandbox_id", sandbox_id, token });
        });
      },
    });
    await noted;
    // A client that has left finds its sandbox by the id that it received.
    if (socket.isClosed) return;
    const slot = sessions.slotOf(access.open(principal, id, { readOnly: false }));
    session = new Session(context, slot);
    session.begin();
  } catch (thrown) {
    const error = publicError(thrown);
    await noted;
    await audit.note("createSandbox", null, error);
    if (error.code === "internal") logger.error({ err: error }, "could not create a sandbox");
    socket.send(statusUpdate("SANDBOX_CREATION_ERROR", errorFields(error)));
    socket.close(closeCodes.internal, error.reason);
  }
}
