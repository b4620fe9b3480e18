import type { KeyScope, Quota } from "@sandpiper/protocol";

/** An API key as it is stored: as a hash, never as text. */
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
