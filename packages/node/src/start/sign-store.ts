import { SandboxError, systemClock } from "@sandpiper/core";
import type { Keyring } from "../auth/keyring.ts";
import { ClusterSecret } from "../cluster/cluster-secret.ts";
import { requireCurrentNodes } from "../cluster/require-current-nodes.ts";
import { signControl } from "../cluster/sign-control.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { openStore } from "../store/open-store.ts";
import { type RewriteProgress, rewriteData } from "../store/rewrite-data.ts";

export interface SignStoreOptions {
  /** Signs objects of an earlier version, which have no signature. */
  readonly acceptsUnsigned: boolean;
  /** Also encrypts checkpoints and states with the current secret. Nodes that write with this secret may run meanwhile. */
  readonly rewritesData: boolean;
  readonly onProgress?: ((progress: RewriteProgress) => void) | undefined;
}

export interface SignedStoreCounts {
  readonly signed: number;
  readonly encrypted: number;
}

/** Signs the control objects of the configured store with the current secret, and encrypts its data on request. */
export async function signStore(config: NodeConfig, options: SignStoreOptions): Promise<SignedStoreCounts> {
  const { acceptsUnsigned, rewritesData, onProgress } = options;
  const { home, store, leaseMs, maxSkewMs, clusterSecret: configured, acceptedClusterSecrets: accepted } = config;
  if (store === null) {
    throw new SandboxError("no_cluster", { message: "no store is configured", hint: "set SANDPIPER_STORE" });
  }
  const secrets = new ClusterSecret({ home, configured, accepted }).find();
  if (secrets === undefined) {
    throw new SandboxError("no_cluster_secret", {
      message: `the secret of the cluster in ${store} is not configured`,
      details: { store },
    });
  }
  let encrypted = 0;
  const opened = openStore(store);
  const prepare = async (keyring: Keyring) => {
    const nodes = { store: opened, keyring, clock: systemClock, deadAfterMs: leaseMs + maxSkewMs };
    await requireCurrentNodes(nodes);
    encrypted = await rewriteData({ store: opened, keyring, acceptUnprotected: acceptsUnsigned, onProgress });
    // A node that was started meanwhile may have added data under the earlier secret.
    await requireCurrentNodes(nodes);
  };
  const signing = { store: opened, secrets, acceptsUnsigned, prepare: rewritesData ? prepare : undefined };
  const { signed } = await signControl(signing);
  return { signed, encrypted };
}
