import { isIP } from "node:net";
import { SandboxError } from "@sandpiper/protocol";

/**
 * Names under which this node is known. A page of somebody else whose name was pointed at this machine sends that name;
 * addresses cannot be pointed anywhere.
 */
export function requireKnownHost(host: string | undefined, known: readonly string[]): void {
  const name = hostNameOf(host);
  if (name !== undefined && (name === "localhost" || isIP(name) !== 0 || known.includes(name))) return;
  throw new SandboxError("permission_denied", {
    reason: "host_not_allowed",
    message: `this node is not known as ${JSON.stringify(host ?? "")}`,
    hint: "use its address, or add the name to the node's mcp.allowedHosts",
    details: { host: host ?? null },
  });
}

/** Without its port; undefined for what names nothing. */
function hostNameOf(host: string | undefined): string | undefined {
  const name = URL.parse(`http://${host}`)?.hostname;
  return name?.replace(/^\[(.*)\]$/, "$1");
}
