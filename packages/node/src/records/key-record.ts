import type { KeyScope, Quota } from "@sandpiper/protocol";

/** A stored API key. Only its hash is stored, never its text. */
export interface KeyRecord {
  readonly id: string;
  readonly hash: Uint8Array;
  readonly name: string;
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
  readonly quota: Quota;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}
