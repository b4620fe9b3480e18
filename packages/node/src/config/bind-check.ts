import { BlockList, isIP } from "node:net";
import { SandboxError } from "@sandpiper/core";
import type { NodeConfig } from "./node-config.ts";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Treats every name but localhost as reachable from elsewhere, because it can resolve to any address. */
export function isLoopbackHost(host: string): boolean {
  if (host.toLowerCase() === "localhost") return true;
  const version = isIP(host);
  return version !== 0 && loopback.check(host, version === 6 ? "ipv6" : "ipv4");
}

/** Prevents keys from crossing a network unencrypted by default. */
export function requireSafeBind({
  host,
  tls,
  allowInsecure,
}: Pick<NodeConfig, "host" | "tls" | "allowInsecure">): void {
  if (isLoopbackHost(host) || tls.certFile !== null || allowInsecure) return;
  throw new SandboxError("insecure_bind", {
    message: `refusing to listen on host ${JSON.stringify(host)} without TLS: keys would cross the network unencrypted`,
    details: { host },
  });
}
