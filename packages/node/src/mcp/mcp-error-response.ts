import type { SandboxError } from "@sandpiper/core";
import { type ErrorBody, errorBody } from "@sandpiper/protocol";
import { errorResponse } from "../http/error-response.ts";
import type { RequestContext } from "../http/request-context.ts";

/** As JSON-RPC and MCP number them; whatever else is wrong is an error of this server's own. */
const codeOfReason: Readonly<Record<string, number>> = {
  malformed_json: -32700,
  batch_not_supported: -32600,
  no_such_session: -32001,
};
const OWN_ERROR = -32000;

/** A refusal with the status and the headers it has in REST, in the words of JSON-RPC. */
export function mcpErrorResponse(error: SandboxError, context: RequestContext): Response {
  const { status, headers } = errorResponse(error, context);
  const { message, hint, ...data }: ErrorBody = errorBody(error, context.requestId);
  const text = hint === undefined ? message : `${message}; ${hint}`;
  const code = codeOfReason[error.reason] ?? OWN_ERROR;
  const body = { jsonrpc: "2.0", error: { code, message: text, data: { ...data, hint } }, id: null };
  return new Response(JSON.stringify(body), { status, headers });
}
