import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { RequestError } from "@hono/node-server";
import { SandboxError } from "@sandpiper/protocol";
import { errorResponse, publicError, rawErrorResponse } from "../http/error-response.ts";

/** Answers bytes that are not valid HTTP with the usual error body. */
export function answerClientError(thrown: NodeJS.ErrnoException, socket: Duplex & { bytesWritten?: number }): void {
  // The client has gone, or an answer has begun that this one would corrupt.
  if (thrown.code === "ECONNRESET" || !socket.writable || (socket.bytesWritten ?? 0) > 0) {
    socket.destroy();
    return;
  }
  socket.end(rawErrorResponse(explain(thrown.code), randomUUID()));
}

function explain(code: string | undefined): SandboxError {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    const message = "the request did not arrive in time";
    return new SandboxError("request_timeout", { message });
  }
  if (code === "HPE_HEADER_OVERFLOW") {
    const message = "the request's headers are too large";
    return new SandboxError("head_too_large", { message });
  }
  const message = "the request is not valid HTTP";
  const hint = "check whether the client uses https for a port without TLS, or http for a port with TLS";
  return new SandboxError("malformed_request", { message, hint });
}

/** Answers a request with an Expect header that the node does not support. */
export function answerExpectation({ socket }: IncomingMessage): void {
  const error = new SandboxError("malformed_request", {
    message: "the request's Expect header is not supported",
    hint: "send Expect: 100-continue, or no Expect header",
  });
  socket.end(rawErrorResponse(error, randomUUID()));
}

/** Answers a request whose target or Host header is invalid with the usual error body. */
export function answerBadTarget(thrown: unknown): Response {
  const requestId = randomUUID();
  const error = thrown instanceof RequestError ? badTarget(thrown) : publicError(thrown);
  return errorResponse(error, { requestId, headers: { "x-request-id": requestId } });
}

function badTarget({ message }: RequestError): SandboxError {
  return new SandboxError("malformed_request", {
    message: `the request has an invalid target: ${message}`,
    hint: "send a path that starts with /, and a valid Host header",
  });
}
