import { createHmac, timingSafeEqual } from "node:crypto";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { openNodeSecret } from "./node-secret.ts";

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
  return new SandboxTokens(openNodeSecret(home));
}
