import { type Clock, pause, SandboxError, type SandboxId } from "@sandpiper/protocol";
import type { ObjectStore } from "../store/object-store.ts";
import { type FencedState, fencedStateSchema, stateKey } from "./fenced-state.ts";
import { JsonObject, type Versioned } from "./json-object.ts";
import { type Lock, lockKey, lockSchema } from "./lock.ts";

const ATTEMPT_MS = 30_000;

export interface RepairLockOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** Longer than an owner takes to renew its lease: a live one replaces a bad lock itself. */
  readonly waitMs: number;
  /** Accept a state that is older than the lock records, as after a restored backup. */
  readonly acceptsOlderState: boolean;
}

/** `sound`: nothing to do. `written`: any node can take the sandbox. `removed`: the lock belonged to no sandbox. */
export type LockRepair = "sound" | "written" | "removed";

/** Replaces a lock that no node accepts, from the sandbox's state. Never touches a lock that nodes accept and that has an owner. */
export async function repairLock(id: SandboxId, options: RepairLockOptions): Promise<LockRepair> {
  const { store, clock, waitMs } = options;
  const found = await badLock(id, options);
  if (found === undefined) return "sound";
  await pause(clock, waitMs);
  const again = await badLock(id, options);
  if (again === undefined || again.tag !== found.tag) return "sound";
  const { tag, state } = again;
  const key = lockKey(id);
  if (state === undefined) {
    if (tag !== undefined && (await store.delete(key, { ifMatch: tag }))) return "removed";
    throw changed(key, store);
  }
  const bytes = new TextEncoder().encode(JSON.stringify(lockAtRest(state, clock.now())));
  const written = await store.put(key, bytes, tag === undefined ? { ifAbsent: true } : { ifMatch: tag });
  if (written === undefined) throw changed(key, store);
  return "written";
}

interface BadLock {
  /** Undefined if the lock is missing. */
  readonly tag: string | undefined;
  readonly state: FencedState | undefined;
}

/** Throws if the state cannot be read: then there is nothing to repair the lock from. */
async function badLock(
  id: SandboxId,
  { store, clock, acceptsOlderState }: RepairLockOptions,
): Promise<BadLock | undefined> {
  const object = { store, clock, attemptMs: ATTEMPT_MS };
  const state = (await new JsonObject({ ...object, key: stateKey(id), schema: fencedStateSchema }).read())?.value;
  let lock: Versioned<Lock> | undefined;
  try {
    lock = await new JsonObject({ ...object, key: lockKey(id), schema: lockSchema }).read();
  } catch (thrown) {
    const tag = thrown instanceof SandboxError ? thrown.details["tag"] : undefined;
    if (typeof tag !== "string") throw thrown;
    return { tag, state };
  }
  if (lock === undefined) {
    if (state !== undefined) return { tag: undefined, state };
    throw new SandboxError("no_such_sandbox", { message: `the store ${store.label} has no sandbox ${id}` });
  }
  const isOlder = state !== undefined && state.revision < lock.value.stateRevision;
  return isOlder && acceptsOlderState && lock.value.owner === null ? { tag: lock.tag, state } : undefined;
}

function lockAtRest({ epoch, revision }: FencedState, now: Date): Lock {
  return {
    owner: null,
    url: null,
    timestamp: Math.floor(now.getTime() / 1000),
    // Higher than that of the state, so that a delayed write of its last owner fails.
    epoch: epoch + 1,
    expiresAt: now.toISOString(),
    attached: false,
    nonce: crypto.randomUUID(),
    revision: 1,
    stateRevision: revision,
    waiter: null,
  };
}

function changed(key: string, { label }: ObjectStore): SandboxError {
  return new SandboxError("store_contended", {
    message: `${key} in ${label} changed during the repair; nothing was written`,
    hint: "repeat the command",
    details: { store: label, key },
  });
}
