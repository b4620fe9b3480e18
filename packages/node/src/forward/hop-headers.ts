import { NODE_PROOF_HEADER } from "../cluster/node-proof.ts";

/** About one connection, not about the request that crosses several (RFC 9110, 7.6.1). */
const hopByHop = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
/** Said anew for the next connection; nobody outside can say that a request comes from a node. */
const ownWords = ["host", "expect", NODE_PROOF_HEADER];

export function forwardedRequestHeaders(headers: Headers): Record<string, string> {
  const dropped = new Set([...hopByHop, ...ownWords, ...namedIn(headers.get("connection"))]);
  return Object.fromEntries([...headers].filter(([name]) => !dropped.has(name)));
}

export function forwardedAnswerHeaders(headers: NodeJS.Dict<string[]>): Headers {
  const dropped = new Set([...hopByHop, ...namedIn(headers["connection"]?.join(","))]);
  const kept = new Headers();
  for (const [name, values = []] of Object.entries(headers)) {
    if (!dropped.has(name)) for (const value of values) kept.append(name, value);
  }
  return kept;
}

/** A connection may name further headers that are its own. */
function namedIn(connection: string | null | undefined): readonly string[] {
  return connection?.split(",").map((name) => name.trim().toLowerCase()) ?? [];
}
