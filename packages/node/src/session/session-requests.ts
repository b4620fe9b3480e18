import { SandboxError } from "@sandpiper/core";
import { sessionRequestSchema } from "@sandpiper/protocol";
import type { MessageSocket } from "../socket/message-socket.ts";
import type { CodeRequest } from "./execution.ts";
import { refused, statusUpdate } from "./session-event.ts";

/** Passes requests to run code to the session, when there is one, and answers pings at any time. */
export function serveRequests(
  socket: MessageSocket,
  session: () => { run(request: CodeRequest): Promise<void> } | undefined,
): void {
  socket.onMessage((data, isBinary) => {
    const request = parseRequest(data, isBinary);
    const running = session();
    if (request === undefined) socket.send(refused(malformed()));
    else if ("ping" in request) socket.send({ event: "pong" });
    else if (running !== undefined) running.run(request);
    else {
      const { execution } = request;
      const message = "the sandbox is not running yet";
      socket.send(statusUpdate("SANDBOX_EXECUTION_ERROR", { message, reason: "not_ready", execution }));
    }
  });
}

function parseRequest(data: Buffer, isBinary: boolean) {
  try {
    const value: unknown = isBinary ? undefined : JSON.parse(data.toString());
    return sessionRequestSchema.safeParse(value).data;
  } catch {
    return undefined;
  }
}

function malformed(): SandboxError {
  return new SandboxError("malformed_request", {
    message: "the request to run code is malformed",
    hint: 'send {"language": "python", "code": "print(1)"} as text',
  });
}
