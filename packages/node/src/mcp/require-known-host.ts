import { isIP } from "node:net";
import { SandboxError } from "@sandpiper/protocol";

/**
 * Protects against DNS rebinding: a malicious page whose name resolves to this machine sends that name as the host. An
 * IP address is safe.
 */
export function requireKnownHost(host: string | undefined, known: readonly string[]): void {
  const name = hostNameOf(host);
  if (name !== undefined && (name === "localhost" || isIP(name) !== 0 || known.includes(name))) return;
  throw new SandboxError("host_not_allowed", {
    message: `the host name ${JSON.stringify(host ?? "")} is not allowed for /mcp`,
    details: { host: host ?? null },
  });
}

/** The host without its port; undefined if it is invalid. */
function hostNameOf(host: string | undefined): string | undefined {
  const name = URL.parse(`http://${host}`)?.hostname;
  return name?.replace(/^\[(.*)\]$/, "$1");
}
