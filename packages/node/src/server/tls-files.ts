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
    // Otherwise a key that does not match the certificate would only fail at the first connection.
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (thrown) {
    throw new SandboxError("bad_tls_files", {
      message: `cannot use the TLS files ${certFile} and ${keyFile}: ${(thrown as Error).message}`,
      details: { certFile, keyFile },
      cause: thrown,
    });
  }
}
