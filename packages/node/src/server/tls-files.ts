import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { SandboxError } from "@sandpiper/core";

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export async function readTlsFiles({ certFile, keyFile }: TlsFiles): Promise<{ cert: Buffer; key: Buffer }> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    // A certificate that does not belong to the key would only show at the first connection.
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (thrown) {
    throw new SandboxError("failed_precondition", {
      reason: "bad_tls_files",
      message: `the TLS files ${certFile} and ${keyFile} cannot be used: ${(thrown as Error).message}`,
      hint: "tls.certFile and tls.keyFile name PEM files that belong together and that the node may read",
      details: { certFile, keyFile },
      cause: thrown,
    });
  }
}
