import type { KeyScope, NetworkPolicy, Quota } from "@sandpiper/protocol";

/** A stored API key. Only its hash is stored, never its text. */
export interface KeyRecord {
  readonly id: string;
  readonly hash: Uint8Array;
  readonly name: string;
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
  readonly quota: Quota;
  /** The most open network of its sandboxes; null for no limit. */
  readonly maxNetwork: NetworkPolicy | null;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}
