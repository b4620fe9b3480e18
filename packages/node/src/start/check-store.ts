import { type LockRepair, type ObjectStore, repairLock, SandboxError, systemClock } from "@sandpiper/core";
import { sandboxIdSchema } from "@sandpiper/protocol";
import type { Keyring } from "../auth/keyring.ts";
import { ClusterSecret } from "../cluster/cluster-secret.ts";
import { CLUSTER_OBJECT, joinCluster } from "../cluster/join-cluster.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { openStore } from "../store/open-store.ts";
import { SealedStates } from "../store/sealed-states.ts";
import { SignedStore } from "../store/signed-store.ts";
import { type BadObject, verifyStore } from "../store/verify-store.ts";

/** The objects of the configured store that nodes refuse. */
export async function checkStore(config: NodeConfig): Promise<readonly BadObject[]> {
  const { store, keyring } = await openShared(config);
  return await Array.fromAsync(verifyStore(store, keyring));
}

export interface RepairSandboxOptions {
  readonly acceptsOlderState: boolean;
}

/** Replaces the lock of a sandbox if nodes refuse it. Takes as long as a lease, so that a live owner is first. */
export async function repairSandbox(
  config: NodeConfig,
  id: string,
  options: RepairSandboxOptions,
): Promise<LockRepair> {
  const parsed = sandboxIdSchema.safeParse(id);
  if (!parsed.success) {
    throw new SandboxError("no_such_sandbox", { message: `${JSON.stringify(id)} is not the id of a sandbox` });
  }
  const { store, keyring } = await openShared(config);
  const clock = systemClock;
  const sealed = new SealedStates(new SignedStore({ store, keyring, clock }), keyring);
  return await repairLock(parsed.data, {
    store: sealed,
    clock,
    waitMs: config.leaseMs + config.maxSkewMs,
    ...options,
  });
}

async function openShared(config: NodeConfig): Promise<{ readonly store: ObjectStore; readonly keyring: Keyring }> {
  const { home, clusterSecret: configured, acceptedClusterSecrets: accepted } = config;
  if (config.store === null) {
    throw new SandboxError("no_cluster", { message: "no store is configured", hint: "set SANDPIPER_STORE" });
  }
  const store = openStore(config.store);
  if ((await store.head(CLUSTER_OBJECT)) === undefined) {
    throw new SandboxError("cluster_identity_missing", {
      message: `${store.label} has no ${CLUSTER_OBJECT}`,
      details: { store: store.label, key: CLUSTER_OBJECT },
    });
  }
  const secret = new ClusterSecret({ home, configured, accepted });
  const { keyring } = await joinCluster({ store, secret, clock: systemClock });
  return { store, keyring };
}
