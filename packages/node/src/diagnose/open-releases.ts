import { existsSync } from "node:fs";
import { join } from "node:path";
import { type KeptRelease, systemClock } from "@sandpiper/core";
import { openKeyring } from "../auth/node-secret.ts";
import { type NeededRelease, ReleaseKeeper } from "../checkpoints/release-keeper.ts";
import { ClusterSecret } from "../cluster/cluster-secret.ts";
import { CLUSTER_OBJECT, joinCluster } from "../cluster/join-cluster.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { createProvider } from "../embedded/create-provider.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import { savedSandboxes } from "../ownership/saved-sandboxes.ts";
import { DirectoryStore } from "../store/directory-store.ts";
import { openStore } from "../store/open-store.ts";
import { SealedStates } from "../store/sealed-states.ts";
import { SignedStore } from "../store/signed-store.ts";

export interface HomeReleases {
  /** The releases that the home keeps, and what needs them. */
  list(): Promise<readonly NeededRelease[]>;
  /** Keeps the runsc or agent at this path. */
  add(path: string): Promise<KeptRelease>;
}

/** The releases of gVisor in a node's home. The node may run meanwhile. */
export function openReleases(config: NodeConfig): HomeReleases {
  const provider = createProvider("gvisor", { home: join(config.home, "node") });
  const keeper = new ReleaseKeeper({
    providers: [provider],
    saved: () => savedIn(config),
    nodes: async () => [],
  });
  return {
    list: () => keeper.list(),
    add: async (path) => (await provider.releases?.add(path)) as KeptRelease,
  };
}

/** Creates neither a secret nor a cluster. */
async function savedIn(config: NodeConfig): Promise<readonly SavedSandbox[]> {
  const { home, clusterSecret: configured, acceptedClusterSecrets: accepted } = config;
  if (config.store === null) {
    if (!existsSync(join(home, "secret"))) return [];
    return await savedSandboxes(new SealedStates(new DirectoryStore(join(home, "store")), openKeyring(home)));
  }
  const store = openStore(config.store);
  if ((await store.get(CLUSTER_OBJECT)) === undefined) return [];
  const secret = new ClusterSecret({ home, configured, accepted });
  const { keyring } = await joinCluster({ store, secret, clock: systemClock });
  return await savedSandboxes(new SealedStates(new SignedStore({ store, keyring, clock: systemClock }), keyring));
}
