/** Headers of a single connection (RFC 9110, section 7.6.1). */
export const hopByHop: readonly string[] = [
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

/** The `Connection` header can name more hop-by-hop headers. */
export function namedIn(connection: string | null | undefined): readonly string[] {
  return connection?.split(",").map((name) => name.trim().toLowerCase()) ?? [];
}

/** The names and values of raw headers, without those of a single connection. Names are in lower case. */
export function* endToEnd(rawHeaders: readonly string[]): Generator<readonly [name: string, value: string]> {
  const pairs: (readonly [string, string])[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    pairs.push([(rawHeaders[at] ?? "").toLowerCase(), rawHeaders[at + 1] ?? ""]);
  }
  const named = pairs.flatMap(([name, value]) => (name === "connection" ? namedIn(value) : []));
  const dropped = new Set([...hopByHop, ...named]);
  for (const pair of pairs) if (!dropped.has(pair[0])) yield pair;
}
