import { createHmac, hkdfSync } from "node:crypto";

const KEY_BYTES = 32;

/** What is computed from the cluster's secret: a key for each purpose, so that none says anything about another. */
export interface ClusterKeys {
  /** Signs the tokens of sandboxes: each opens its sandbox on any node. */
  readonly sandboxTokens: Uint8Array;
  /** With it nodes prove to each other who they are. */
  readonly nodeProof: Uint8Array;
  /** Shows that a node has the secret of the cluster whose store it uses. */
  readonly check: string;
}

export function deriveClusterKeys(secret: string, clusterId: string): ClusterKeys {
  const key = (purpose: string) =>
    new Uint8Array(hkdfSync("sha256", secret, clusterId, `sandpiper ${purpose}`, KEY_BYTES));
  return {
    sandboxTokens: key("sandbox tokens"),
    nodeProof: key("node proof"),
    check: createHmac("sha256", key("check")).update(clusterId).digest("base64url"),
  };
}
