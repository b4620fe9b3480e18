import { type Clock, lockAtRest, lockKey, type ObjectStore, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Keyring } from "../auth/keyring.ts";
import { type Account, hasDurableLimit, NO_QUOTA } from "../auth/quota.ts";
import { SharedNames } from "../cluster/shared-names.ts";
import { SharedQuotas } from "../cluster/shared-quotas.ts";
import { type ClusterKeys, clusterKeysOf, KEYS_OBJECT, type KeysDocument } from "../cluster/stored-keys.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { usageOf } from "../sandboxes/capacity.ts";
import { SignedStore } from "../store/signed-store.ts";

export interface RestoredState {
  readonly record: SandboxRecord;
  readonly epoch: number;
}

export interface RestoreControlOptions {
  readonly store: ObjectStore;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly keys: KeysDocument;
  readonly states: readonly RestoredState[];
}

/**
 * Writes the objects that control a restored cluster, signed now: nodes that have seen later versions before the restore accept them.
 * No node owns a restored sandbox; its next use restores its newest checkpoint.
 */
export async function restoreControl({ store, keyring, clock, keys, states }: RestoreControlOptions): Promise<void> {
  const control = new SignedStore({ store, keyring, clock });
  const records = states.map(({ record }) => record);
  for (const { record, epoch } of states) {
    await control.put(lockKey(record.id), json(lockAtRest(epoch, clock.now())));
  }
  await restoreNames(control, { clock, records });
  await restoreQuotas(control, { clock, records, keys: clusterKeysOf(keys) });
  // Nodes remember the highest revision. A time is higher than any count of changes, and than an earlier restore.
  await control.put(KEYS_OBJECT, json({ ...keys, revision: clock.now().getTime() }));
}

interface Parts {
  readonly clock: Clock;
  readonly records: readonly SandboxRecord[];
}

async function restoreNames(store: ObjectStore, { clock, records }: Parts): Promise<void> {
  const names = new SharedNames({ store, clock, isNamed: async () => true });
  for (const { id, tenant, name, endedAt } of records) {
    if (name === null || endedAt !== null) continue;
    await names.take({ tenant, name, id }).catch((thrown) => {
      // Both sandboxes had the name at different times during the backup, and keep it.
      if (SandboxError.from(thrown).reason !== "name_in_use") throw thrown;
    });
  }
}

async function restoreQuotas(
  store: ObjectStore,
  { clock, records, keys: { keys, tenants } }: Parts & { readonly keys: ClusterKeys },
): Promise<void> {
  let failure: SandboxError | undefined;
  const quotas = new SharedQuotas({
    store,
    clock,
    nodeId: "",
    quotas: { keyQuota: () => NO_QUOTA, tenantQuota: () => NO_QUOTA },
    isNodeAlive: async () => false,
    exists: async () => true,
    onError: (error) => {
      failure = error;
      quotas.stop();
    },
  });
  const accounts: readonly Account[] = [
    ...keys.map(({ id, quota }) => ({ kind: "key", name: id, quota }) as const),
    ...[...tenants].map(([name, quota]) => ({ kind: "tenant", name, quota }) as const),
  ];
  for (const account of accounts.filter(({ quota }) => hasDurableLimit(quota))) {
    const field = account.kind === "key" ? "keyId" : "tenant";
    const own = records.filter((record) => record[field] === account.name);
    quotas.holdAtRest(
      account,
      new Map<SandboxId, ReturnType<typeof usageOf>>(own.map((one) => [one.id, usageOf(one)])),
    );
  }
  await quotas.settled();
  if (failure !== undefined) throw failure;
}

function json(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
