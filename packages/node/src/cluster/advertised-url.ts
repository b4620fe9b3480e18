import { SandboxError } from "@sandpiper/core";
import type { NodeConfig } from "../config/node-config.ts";

/** The URL at which other nodes reach this one. It must be known before the node listens, and must not change. */
export function advertisedUrl({
  advertiseUrl,
  host,
  port,
  tls,
}: Pick<NodeConfig, "advertiseUrl" | "host" | "port" | "tls">): string {
  if (advertiseUrl !== null) return advertiseUrl;
  if (host === "0.0.0.0" || host === "::" || port === 0) {
    throw new SandboxError("no_advertise_url", {
      message: `cannot tell other nodes how to reach this one: it listens on ${host}, port ${port}, which is not an address to connect to`,
      details: { host, port },
    });
  }
  const name = host.includes(":") ? `[${host}]` : host;
  return `${tls.certFile === null ? "http" : "https"}://${name}:${port}`;
}
