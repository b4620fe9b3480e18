import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/protocol";
import { writePrivateFile } from "./private-file.ts";

const SECRET_BYTES = 32;

/** The secret in the node's home, created at first use. */
export function openNodeSecret(home: string): Uint8Array {
  const path = join(home, "secret");
  if (!existsSync(path)) writePrivateFile(path, randomBytes(SECRET_BYTES));
  const secret = readFileSync(path);
  if (secret.length === SECRET_BYTES) return secret;
  throw new SandboxError("secret_corrupt", {
    message: `the node's secret ${path} has ${secret.length} bytes instead of ${SECRET_BYTES}; the file was not changed`,
    hint: "restore it from a backup; if you delete it, the checkpoints in this home cannot be read any more, and every sandbox gets a new token",
    details: { path },
  });
}
