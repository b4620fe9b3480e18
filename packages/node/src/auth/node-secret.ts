import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/protocol";
import { Keyring } from "./keyring.ts";
import { writePrivateFile } from "./private-file.ts";

const SECRET_BYTES = 32;

/**
 * The secrets in the node's home, created at first use. The file holds them without separators: the first one protects new data, and
 * the others are accepted, too, until an operator removes them.
 */
export function openNodeSecrets(home: string): readonly [Uint8Array, ...Uint8Array[]] {
  const path = join(home, "secret");
  if (!existsSync(path)) writePrivateFile(path, randomBytes(SECRET_BYTES));
  return parseNodeSecrets(readFileSync(path), path);
}

/** `path` is for the error. */
export function parseNodeSecrets(bytes: Uint8Array, path: string): readonly [Uint8Array, ...Uint8Array[]] {
  if (bytes.length === 0 || bytes.length % SECRET_BYTES !== 0) throw corrupt(path, bytes.length);
  const secretAt = (index: number) => bytes.subarray(index * SECRET_BYTES, (index + 1) * SECRET_BYTES);
  const others = Array.from({ length: bytes.length / SECRET_BYTES - 1 }, (_, index) => secretAt(index + 1));
  return [secretAt(0), ...others];
}

/** The keys of a standalone node. */
export function openKeyring(home: string): Keyring {
  return new Keyring({ secrets: openNodeSecrets(home), salt: "standalone node" });
}

function corrupt(path: string, length: number): SandboxError {
  return new SandboxError("secret_corrupt", {
    message: `the node's secret ${path} has ${length} bytes instead of ${SECRET_BYTES} for each secret; the file was not changed`,
    hint: "restore it from a backup; without it, checkpoints cannot be read and tokens are invalid",
    details: { path },
  });
}
