import type { NodeConfig } from "../config/node-config.ts";

/**
 * The URL at which other nodes reach this one, known before the node listens. Null if they cannot: no URL is set, and the
 * node listens on all addresses or on any free port.
 */
export function advertisedUrl({
  advertiseUrl,
  host,
  port,
  tls,
}: Pick<NodeConfig, "advertiseUrl" | "host" | "port" | "tls">): string | null {
  if (advertiseUrl !== null) return advertiseUrl;
  if (host === "0.0.0.0" || host === "::" || port === 0) return null;
  const name = host.includes(":") ? `[${host}]` : host;
  return `${tls.certFile === null ? "http" : "https"}://${name}:${port}`;
}
