import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { SandboxError } from "@sandpiper/core";
import { errorBody, errorCodes } from "@sandpiper/protocol";

/** Answers a request for a WebSocket as any other request that failed, and closes the connection. */
export function refuseUpgrade(socket: Duplex, error: SandboxError, requestId: string): void {
  const status = errorCodes[error.code].httpStatus;
  const body = JSON.stringify(errorBody(error, requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? error.code}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    ...(status === 401 ? ["WWW-Authenticate: Bearer"] : []),
    "Connection: close",
  ];
  // The client's half may stay open for ever.
  socket.once("finish", () => socket.destroy());
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
