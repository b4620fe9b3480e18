import { randomUUID } from "node:crypto";
import { RequestError } from "@hono/node-server";
import { errorBody, errorCodes, SandboxError } from "@sandpiper/protocol";

/** What is HTTP but names nothing that could be here, such as a Host that is none, gets the same shape of answer too. */
export function answerBadTarget(thrown: unknown): Response {
  const error =
    thrown instanceof RequestError
      ? new SandboxError("invalid_argument", {
          reason: "malformed_request",
          message: `the request has no address that can be understood: ${thrown.message}`,
          hint: "send a path that starts with /, and a Host header",
        })
      : new SandboxError("internal", { reason: "internal_error", message: "the node failed on this request" });
  const requestId = randomUUID();
  return new Response(JSON.stringify(errorBody(error, requestId)), {
    status: errorCodes[error.code].httpStatus,
    headers: { "content-type": "application/json", "x-request-id": requestId },
  });
}
