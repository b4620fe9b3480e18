import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isSandboxId, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { writePrivateFile } from "./private-file.ts";

const SECRET_BYTES = 32;
const TOKEN = /^spt_([0-9a-f-]{36})_([A-Za-z0-9_-]{43})$/;

/** Verified in place of a malformed token, so that it takes as long as a wrong one. */
const noToken = { id: "00000000-0000-4000-8000-000000000000", signature: "_".repeat(43) };

/** Tokens that grant access to one sandbox each. They are derived from the node's secret and never stored. */
export class SandboxTokens {
  readonly #secret: Uint8Array;

  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  tokenOf(id: SandboxId): string {
    return `spt_${id}_${this.#signature(id)}`;
  }

  /** Undefined if the token is not from this node. */
  verify(token: string): SandboxId | undefined {
    const [, id = noToken.id, signature = noToken.signature] = TOKEN.exec(token) ?? [];
    const isMatch = timingSafeEqual(Buffer.from(this.#signature(id)), Buffer.from(signature));
    return isMatch && isSandboxId(id) && id !== noToken.id ? id : undefined;
  }

  #signature(id: string): string {
    return createHmac("sha256", this.#secret).update(id).digest("base64url");
  }
}

export function openSandboxTokens(home: string): SandboxTokens {
  return new SandboxTokens(openSecret(home));
}

/** Reads the secret in the node's home, and creates it at first use. */
export function openSecret(home: string): Uint8Array {
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
