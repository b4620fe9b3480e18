import { STATUS_CODES } from "node:http";
import { SandboxError } from "@sandpiper/core";
import { type ErrorBody, errorBody, errorCodes } from "@sandpiper/protocol";
import { diskFullError } from "../records/disk-full.ts";

/** Reasons with a more specific HTTP status than their code has. */
const statusOfReason: Readonly<Record<string, number>> = {
  bad_guest_response: 502,
  body_too_large: 413,
  head_too_large: 431,
  method_not_allowed: 405,
  port_not_listening: 502,
  range_not_satisfiable: 416,
  request_timeout: 408,
  slow_body: 408,
  unsupported_media_type: 415,
};

export function statusOf({ code, reason }: SandboxError): number {
  return statusOfReason[reason] ?? errorCodes[code].httpStatus;
}

/** Converts a thrown value into an error for the caller. Hides the details of internal errors. */
export function publicError(thrown: unknown): SandboxError {
  const error = SandboxError.from(thrown);
  if (error.reason !== "unexpected") return error;
  const diskFull = diskFullError(thrown);
  if (diskFull !== undefined) return diskFull;
  return new SandboxError("internal_error", { message: "the node failed to handle this request", cause: thrown });
}

export function errorResponse(
  error: SandboxError,
  { requestId, headers }: { readonly requestId: string; readonly headers: Readonly<Record<string, string>> },
): Response {
  const body: ErrorBody = errorBody(error, requestId);
  return new Response(JSON.stringify(body), {
    status: statusOf(error),
    headers: { ...headers, ...errorHeaders(error), "content-type": "application/json" },
  });
}

/** An answer as bytes on the wire, for a connection that Node's HTTP server does not answer. */
export function rawErrorResponse(error: SandboxError, requestId: string): string {
  const status = statusOf(error);
  const body = JSON.stringify(errorBody(error, requestId));
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "x-request-id": requestId,
    ...errorHeaders(error),
    connection: "close",
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? error.code}\r\n${head.join("")}\r\n${body}`;
}

/** Headers that tell a client how to continue. */
export function errorHeaders({ code, reason, details }: SandboxError): Record<string, string> {
  if (code === "unauthenticated") return { "www-authenticate": "Bearer" };
  const { retryAfterMs } = details;
  if (typeof retryAfterMs === "number") return { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))) };
  if (reason === "method_not_allowed") return { allow: String(details["allowed"]) };
  if (reason === "range_not_satisfiable") return { "content-range": `bytes */${String(details["sizeBytes"])}` };
  return {};
}

export function noSuchPath(method: string, path: string): SandboxError {
  return new SandboxError("no_such_route", { message: `no such operation: ${method} ${path}` });
}

export function methodNotAllowed(method: string, path: string, allowed: readonly string[]): SandboxError {
  return new SandboxError("method_not_allowed", {
    message: `${path} does not support ${method}`,
    hint: `use ${allowed.join(" or ")}`,
    details: { allowed: allowed.join(", ") },
  });
}
