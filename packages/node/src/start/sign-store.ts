import { SandboxError } from "@sandpiper/core";
import type { Keyring } from "../auth/keyring.ts";
import { ClusterSecret } from "../cluster/cluster-secret.ts";
import { signControl } from "../cluster/sign-control.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { openStore } from "../store/open-store.ts";
import { rewriteData } from "../store/rewrite-data.ts";

export interface SignStoreOptions {
  /** Signs objects of an earlier version, which have no signature. */
  readonly acceptsUnsigned: boolean;
  /** Also encrypts checkpoints and states with the current secret. No node may run meanwhile. */
  readonly rewritesData: boolean;
}

export interface SignedStoreCounts {
  readonly signed: number;
  readonly encrypted: number;
}

/** Signs the control objects of the configured store with the current secret, and encrypts its data on request. */
export async function signStore(config: NodeConfig, options: SignStoreOptions): Promise<SignedStoreCounts> {
  const { acceptsUnsigned, rewritesData } = options;
  const { home, store, clusterSecret: configured, acceptedClusterSecrets: accepted } = config;
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
    encrypted = await rewriteData({ store: opened, keyring, acceptUnprotected: acceptsUnsigned });
  };
  const signing = { store: opened, secrets, acceptsUnsigned, prepare: rewritesData ? prepare : undefined };
  const { signed } = await signControl(signing);
  return { signed, encrypted };
}
