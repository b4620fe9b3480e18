import { existsSync } from "node:fs";
import { join } from "node:path";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { Keyring } from "../auth/keyring.ts";
import { openNodeSecrets } from "../auth/node-secret.ts";
import { ClusterSecret } from "../cluster/cluster-secret.ts";
import { findCluster } from "../cluster/join-cluster.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { DirectoryStore } from "../store/directory-store.ts";
import { openStore } from "../store/open-store.ts";
import type { StateKind } from "./read-state.ts";

/** What a backup copies: the home of a standalone node, or the store of a cluster. */
export interface BackupSource {
  readonly kind: StateKind;
  readonly store: ObjectStore;
  readonly keyring: Keyring;
  readonly clusterId: string | null;
  /** As the file in a node's home holds it. */
  readonly secret: Uint8Array;
}

/** The store that is configured, or else the home. */
export async function openSource(config: NodeConfig): Promise<BackupSource> {
  return config.store === null ? openHomeSource(config) : openStoreSource(config, openStore(config.store));
}

function openHomeSource({ home }: NodeConfig): BackupSource {
  if (!existsSync(join(home, "node.db"))) {
    throw new SandboxError("no_home", { message: `${home} holds no node`, details: { path: home } });
  }
  const secrets = openNodeSecrets(home);
  return {
    kind: "home",
    store: new DirectoryStore(join(home, "store")),
    keyring: homeKeyring(secrets),
    clusterId: null,
    secret: Buffer.concat(secrets),
  };
}

async function openStoreSource(config: NodeConfig, store: ObjectStore): Promise<BackupSource> {
  const secret = clusterSecretOf(config);
  const { id, keyring } = await findCluster({ store, secret });
  const secrets = secret.find() ?? [];
  return { kind: "store", store, keyring, clusterId: id, secret: Buffer.from(`${secrets.join("\n")}\n`) };
}

export function clusterSecretOf(config: NodeConfig): ClusterSecret {
  const { home, clusterSecret: configured, acceptedClusterSecrets: accepted } = config;
  return new ClusterSecret({ home, configured, accepted });
}

export function homeKeyring(secrets: readonly [Uint8Array, ...Uint8Array[]]): Keyring {
  return new Keyring({ secrets, salt: "standalone node" });
}
