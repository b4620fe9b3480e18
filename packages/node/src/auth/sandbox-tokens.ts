import { createHmac, timingSafeEqual } from "node:crypto";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";

const TOKEN = /^spt_([0-9a-f-]{36})_([A-Za-z0-9_-]{43})$/;

/** Verified in place of a malformed token, so that it takes as long as a wrong one. */
const noToken = { id: "00000000-0000-4000-8000-000000000000", signature: "_".repeat(43) };

/** Tokens that grant access to one sandbox each. They are derived from secrets and never stored. */
export class SandboxTokens {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]];

  /** The first key signs, and all verify. */
  constructor(keys: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#keys = keys;
  }

  tokenOf(id: SandboxId): string {
    return `spt_${id}_${signatureOf(this.#keys[0], id)}`;
  }

  /** Undefined if the token is not from this node. */
  verify(token: string): SandboxId | undefined {
    const [, id = noToken.id, signature = noToken.signature] = TOKEN.exec(token) ?? [];
    const isMatch = (key: Uint8Array) => timingSafeEqual(Buffer.from(signatureOf(key, id)), Buffer.from(signature));
    return this.#keys.some(isMatch) && isSandboxId(id) && id !== noToken.id ? id : undefined;
  }
}

function signatureOf(key: Uint8Array, id: string): string {
  return createHmac("sha256", key).update(id).digest("base64url");
}
