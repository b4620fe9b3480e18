import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";

/** The authorities that vouch for servers: those of Node.js, of the machine, and of a file. */
export function serverTrust(extraCaFile: string | null): SecureContext {
  const extra = extraCaFile === null ? [] : [readFileSync(extraCaFile, "utf8")];
  return createSecureContext({ ca: [...getCACertificates("bundled"), ...getCACertificates("system"), ...extra] });
}
