import { SandboxError } from "@sandpiper/core";
import { type ErrorBody, errorBody, errorCodes } from "@sandpiper/protocol";

/** Where HTTP says it more precisely than the code does. */
const statusOfReason: Readonly<Record<string, number>> = {
  body_too_large: 413,
  method_not_allowed: 405,
  range_not_satisfiable: 416,
  unsupported_media_type: 415,
};

function statusOf({ code, reason }: SandboxError): number {
  return statusOfReason[reason] ?? errorCodes[code].httpStatus;
}

/** What was thrown as the caller may see it: a fault of the node keeps to itself what it was. */
export function publicError(thrown: unknown): SandboxError {
  const error = SandboxError.from(thrown);
  if (error.reason !== "unexpected") return error;
  return new SandboxError("internal", {
    reason: "internal_error",
    message: "the node failed on this request",
    hint: "its log tells more under this request's id; please report it",
    cause: thrown,
  });
}

export function errorResponse(
  error: SandboxError,
  { requestId, headers }: { readonly requestId: string; readonly headers: Readonly<Record<string, string>> },
): Response {
  const body: ErrorBody = errorBody(error, requestId);
  return new Response(JSON.stringify(body), {
    status: statusOf(error),
    headers: { ...headers, ...challenge(error), "content-type": "application/json" },
  });
}

function challenge({ code, reason, details }: SandboxError): Record<string, string> {
  if (code === "unauthenticated") return { "www-authenticate": "Bearer" };
  if (reason === "method_not_allowed") return { allow: String(details["allowed"]) };
  if (reason === "range_not_satisfiable") return { "content-range": `bytes */${String(details["sizeBytes"])}` };
  return {};
}

export function noSuchPath(method: string, path: string): SandboxError {
  return new SandboxError("not_found", {
    reason: "no_such_path",
    message: `there is nothing at ${method} ${path}`,
    hint: "GET /openapi.json lists what there is",
  });
}

export function methodNotAllowed(method: string, path: string, allowed: readonly string[]): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "method_not_allowed",
    message: `${method} is not possible on ${path}`,
    hint: `use ${allowed.join(" or ")}`,
    details: { allowed: allowed.join(", ") },
  });
}
