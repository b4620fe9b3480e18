import { createHmac, timingSafeEqual } from "node:crypto";
import type { SandboxId } from "@sandpiper/protocol";
import type { PreviewTarget } from "./preview-addresses.ts";

const LINK = /^(\d{1,10})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/;
const TRAFFIC = /^(\d{1,10})\.([A-Za-z0-9_-]{43})$/;

/** What a verified link or traffic token grants. */
export interface PreviewGrant {
  /** Valid only while it is that of the sandbox. */
  readonly linkEpoch: number;
  /** Undefined for a traffic token, which does not expire. */
  readonly expiresAtMs?: number | undefined;
}

/** Signs the links and traffic tokens of previews. They are never stored. */
export class PreviewTokens {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]];

  /** The first key signs, and all verify. */
  constructor(keys: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#keys = keys;
  }

  /** Opens one port of the sandbox. */
  link({ sandboxId, port }: PreviewTarget, { linkEpoch, expiresAtMs }: Required<PreviewGrant>): string {
    return `${linkEpoch}.${expiresAtMs}.${sign(this.#keys[0], ["link", sandboxId, port, linkEpoch, expiresAtMs])}`;
  }

  /** Opens every port of the sandbox. */
  trafficToken(sandboxId: SandboxId, linkEpoch: number): string {
    return `${linkEpoch}.${sign(this.#keys[0], ["traffic", sandboxId, linkEpoch])}`;
  }

  /** Undefined if no node of the cluster made the link for this preview. Does not check its time. */
  verifyLink({ sandboxId, port }: PreviewTarget, link: string): PreviewGrant | undefined {
    const [, epoch, expires, signature = ""] = LINK.exec(link) ?? [];
    const grant = { linkEpoch: Number(epoch), expiresAtMs: Number(expires) };
    const isValid = this.#verify(["link", sandboxId, port, grant.linkEpoch, grant.expiresAtMs], signature);
    return isValid ? grant : undefined;
  }

  verifyTrafficToken(sandboxId: SandboxId, token: string): PreviewGrant | undefined {
    const [, epoch, signature = ""] = TRAFFIC.exec(token) ?? [];
    const linkEpoch = Number(epoch);
    return this.#verify(["traffic", sandboxId, linkEpoch], signature) ? { linkEpoch } : undefined;
  }

  #verify(content: readonly unknown[], signature: string): boolean {
    const given = Buffer.from(signature.padEnd(43, "_"));
    return this.#keys.some((key) => timingSafeEqual(Buffer.from(sign(key, content)), given));
  }
}

function sign(key: Uint8Array, content: readonly unknown[]): string {
  return createHmac("sha256", key).update(JSON.stringify(content)).digest("base64url");
}
