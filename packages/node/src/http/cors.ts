import type { HttpDependencies } from "./http-dependencies.ts";

const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";
const REQUEST_HEADERS =
  "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, Range, X-Request-Id";
const ANSWER_HEADERS =
  "Allow, Content-Length, Content-Range, Mcp-Session-Id, Sandpiper-End-Offset, Sandpiper-Start-Offset, X-Request-Id";

/** Lets web pages of the configured origins read an answer. Cookies are not allowed. */
export function corsHeaders(
  request: Request,
  { corsOrigins }: Pick<HttpDependencies, "corsOrigins">,
): Record<string, string> {
  if (corsOrigins.length === 0) return {};
  const origin = request.headers.get("origin");
  if (origin === null || !corsOrigins.includes(origin)) return { vary: "Origin" };
  return { vary: "Origin", "access-control-allow-origin": origin, "access-control-expose-headers": ANSWER_HEADERS };
}

/** Answers a browser's preflight request. Undefined for other requests, and for origins that are not allowed. */
export function preflightResponse(request: Request, headers: Readonly<Record<string, string>>): Response | undefined {
  if (request.method !== "OPTIONS" || !("access-control-allow-origin" in headers)) return undefined;
  if (!request.headers.has("access-control-request-method")) return undefined;
  const allowed = {
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": REQUEST_HEADERS,
    "access-control-max-age": "600",
  };
  return new Response(null, { status: 204, headers: { ...headers, ...allowed } });
}
