import { SandboxError } from "@sandpiper/core";
import { closeCodes } from "../socket/message-socket.ts";
import { createOptions } from "./create-options.ts";
import { Session } from "./session.ts";
import type { SessionContext } from "./session-context.ts";
import { errorText, statusUpdate } from "./session-event.ts";

/** `WS /create`: makes a sandbox and attaches its client to it. */
export async function createSession(context: SessionContext, query: URLSearchParams): Promise<void> {
  const { socket, principal, dependencies, sessions, logger, audit } = context;
  const { service } = dependencies;
  const leaving = new AbortController();
  socket.closed.then(() => leaving.abort());
  let session: Session | undefined;
  socket.onMessage((data, isBinary) => {
    if (session !== undefined) session.receive(data, isBinary);
    else socket.send(statusUpdate("SANDBOX_EXECUTION_ERROR", { message: "the sandbox is not running yet" }));
  });
  socket.send(statusUpdate("SANDBOX_CREATING"));
  try {
    const { id } = await service.create(principal, createOptions(query), {
      signal: leaving.signal,
      onId: (sandbox_id, token) => socket.send({ event: "sandbox_id", sandbox_id, token }),
    });
    audit.note("createSandbox", id);
    // A client that left at the last moment finds its sandbox by the id it was told.
    if (socket.isClosed) return;
    const slot = sessions.slotOf(service.open(principal, id));
    session = new Session({ locator: dependencies.locator, socket, slot, logger, audit });
    session.begin();
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    audit.note("createSandbox", null, error);
    if (error.code === "internal") logger.error({ err: error }, "a sandbox could not be created");
    socket.send(statusUpdate("SANDBOX_CREATION_ERROR", { message: errorText(error) }));
    socket.close(closeCodes.internal, error.reason);
  }
}
