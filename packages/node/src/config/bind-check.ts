import { BlockList, isIP } from "node:net";
import { SandboxError } from "@sandpiper/core";
import type { NodeConfig } from "./node-config.ts";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** A name other than localhost may mean any address, now or later, and is taken for one that others reach. */
export function isLoopbackHost(host: string): boolean {
  if (host.toLowerCase() === "localhost") return true;
  const version = isIP(host);
  return version !== 0 && loopback.check(host, version === 6 ? "ipv6" : "ipv4");
}

/** Keys must not cross a network in the clear because of a default. */
export function requireSafeBind({
  host,
  tls,
  allowInsecure,
}: Pick<NodeConfig, "host" | "tls" | "allowInsecure">): void {
  if (isLoopbackHost(host) || tls.certFile !== null || allowInsecure) return;
  throw new SandboxError("failed_precondition", {
    reason: "insecure_bind",
    message: `host ${JSON.stringify(host)} can be reached from other machines, and there is no TLS: keys would cross the network in the clear`,
    hint: "set tls.certFile and tls.keyFile; or keep 127.0.0.1 behind a proxy that has TLS; or, on a network you trust, start with --allow-insecure",
    details: { host },
  });
}
