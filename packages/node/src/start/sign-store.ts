import { SandboxError } from "@sandpiper/core";
import { ClusterSecret } from "../cluster/cluster-secret.ts";
import { signControl } from "../cluster/sign-control.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { openStore } from "../store/open-store.ts";

export interface SignStoreOptions {
  /** Signs objects of an earlier version, which have no signature. */
  readonly acceptsUnsigned: boolean;
}

/** Signs the control objects of the configured store with the current secret. Resolves to how many it signed. */
export async function signStore(config: NodeConfig, { acceptsUnsigned }: SignStoreOptions): Promise<number> {
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
  return (await signControl({ store: openStore(store), secrets, acceptsUnsigned })).signed;
}
