import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { EndpointTls } from "./endpoint.ts";

/** The certificates of a directory, in the files that Docker's client has them in. */
export async function readTls(
  directory: string,
  { isVerified }: { readonly isVerified: boolean },
): Promise<EndpointTls> {
  const [ca, cert, key] = await Promise.all(["ca.pem", "cert.pem", "key.pem"].map((name) => read(directory, name)));
  if ((cert === undefined) !== (key === undefined)) {
    throw missing(
      directory,
      cert === undefined ? "cert.pem is not there, key.pem is" : "key.pem is not there, cert.pem is",
    );
  }
  if (isVerified && ca === undefined) throw missing(directory, "ca.pem is not there");
  return { ca, cert, key, isVerified };
}

async function read(directory: string, name: string): Promise<string | undefined> {
  try {
    return await readFile(join(directory, name), "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw missing(directory, message);
  }
}

function missing(directory: string, why: string): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "engine_certificates",
    message: `the certificates for the engine in ${directory} cannot be used: ${why}`,
    hint: "put ca.pem, cert.pem and key.pem there, or set DOCKER_CERT_PATH to where they are",
  });
}
