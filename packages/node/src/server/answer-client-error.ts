import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { errorBody, SandboxError } from "@sandpiper/protocol";

/** What is not even HTTP gets the same shape of answer as everything else. */
export function answerClientError(thrown: NodeJS.ErrnoException, socket: Duplex & { bytesWritten?: number }): void {
  // Nobody reads it any more, or an answer has begun that this one would be mixed into.
  if (thrown.code === "ECONNRESET" || !socket.writable || (socket.bytesWritten ?? 0) > 0) {
    socket.destroy();
    return;
  }
  const { status, error } = explain(thrown.code);
  const requestId = randomUUID();
  const body = JSON.stringify(errorBody(error, requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

function explain(code: string | undefined): { status: number; error: SandboxError } {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    const message = "the request did not arrive in time";
    return { status: 408, error: new SandboxError("deadline_exceeded", { reason: "request_timeout", message }) };
  }
  if (code === "HPE_HEADER_OVERFLOW") {
    const message = "the head of the request is too large";
    return { status: 431, error: new SandboxError("invalid_argument", { reason: "head_too_large", message }) };
  }
  const message = "this is not an HTTP request that can be understood";
  const hint = "is the client speaking TLS to a port without it, or the other way round?";
  return { status: 400, error: new SandboxError("invalid_argument", { reason: "malformed_request", message, hint }) };
}
