import {
  type CheckpointRequirements,
  type Clock,
  type PreparedSandbox,
  type RequirementsOptions,
  type Sandbox,
  SandboxError,
} from "@sandpiper/core";
import type { CheckpointResource, SandboxId } from "@sandpiper/protocol";
import type { Ownership } from "../ownership/ownership.ts";
import { checkpointTotals } from "../ownership/saved-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { Capacity } from "../sandboxes/capacity.ts";
import { instanceKey } from "../sandboxes/instance-key.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import type { CheckpointStore } from "../store/checkpoint-store.ts";
import { requireRestorable } from "./requirements.ts";

export interface SaveRestoreOptions {
  readonly registry: SandboxRegistry;
  readonly providers: Providers;
  readonly capacity: Pick<Capacity, "requireCheckpoint" | "countCheckpoints">;
  readonly checkpointStore: CheckpointStore;
  readonly ownership: Ownership;
  readonly clock: Clock;
  readonly observeCheckpoint?: ((provider: string, seconds: number) => void) | undefined;
  /** Receives failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** The steps of a save: the runtime has saved the sandbox, the store has its chunks, and its state. */
export type SaveStep = "checkpointed" | "saved" | "committed";
/** The steps of a restore: the chunks are here, the runtime has restored the sandbox, and its agent answers. */
export type RestoreStep = "loaded" | "restored" | "connected";

export interface RestoreOptions {
  /** The caller's prepared instance. */
  readonly instance?: Promise<PreparedSandbox> | undefined;
  readonly onStep?: ((step: RestoreStep) => void) | undefined;
}

interface RestoreFilesOptions extends RestoreOptions {
  /** The requirements of the checkpoint. */
  readonly saved: CheckpointRequirements;
}

export interface SaveOptions {
  readonly name?: string | undefined;
  readonly ttlMs?: number | null | undefined;
  readonly isAutomatic?: boolean | undefined;
  /** How many checkpoints of the same kind to keep, including this one. */
  readonly keepLast?: number | undefined;
  /** The state of the sandbox afterwards; without it the sandbox keeps running. */
  readonly stopAs?: "paused" | "stopped" | undefined;
  /** Whether quotas and the host's reserve apply. The node's own saves, such as those of a handoff, must not lose work. */
  readonly isLimited?: boolean | undefined;
  readonly onStep?: ((step: SaveStep) => void) | undefined;
}

/** Saves running sandboxes as checkpoints and restores them. The caller holds the sandbox's mutex. */
export class SaveRestore {
  readonly #options: SaveRestoreOptions;
  /** The newest checkpoint of each running sandbox, and the sandbox's change count at that time. */
  readonly #newest = new WeakMap<LiveSandbox, { readonly changes: number; readonly checkpoint: string }>();

  constructor(options: SaveRestoreOptions) {
    this.#options = options;
  }

  /** If this fails, the sandbox keeps running. */
  async save(id: SandboxId, options: SaveOptions): Promise<CheckpointResource> {
    const { checkpointStore, ownership, registry, capacity, clock, observeCheckpoint } = this.#options;
    const { sandbox, record, live } = registry.instance(id);
    const state = await ownership.state(id);
    const before = state.content?.checkpoints ?? [];
    if (options.name !== undefined && before.some(({ name }) => name === options.name)) throw nameTaken(options.name);
    const { isLimited = false, isAutomatic = false } = options;
    const next = [...before, { isAutomatic }];
    const checkpointCount = next.length - surplusOf(next, options).length;
    if (isLimited) capacity.requireCheckpoint(record, { checkpointCount });
    const requirements = await this.requirements(record, { instance: id });
    const startedAtMs = clock.monotonicMs();
    await using scratch = await checkpointStore.scratch();
    // Read before the save: the checkpoint contains everything up to this time.
    const createdAt = clock.now();
    const { changes } = live;
    live.notifySave("begun");
    try {
      const unchanged = options.stopAs === undefined ? await this.#findUnchanged(id, before) : undefined;
      const { pausedMs } =
        unchanged !== undefined
          ? { pausedMs: 0 }
          : await sandbox.checkpoint(scratch.path, { keepsRunning: options.stopAs === undefined });
      options.onStep?.("checkpointed");
      const checkpointId = crypto.randomUUID();
      const size =
        unchanged === undefined
          ? await checkpointStore.save(record, checkpointId, scratch.path)
          : {
              sizeBytes: unchanged.sizeBytes,
              uploadedBytes: await checkpointStore.copy(record, unchanged.id, checkpointId),
            };
      options.onStep?.("saved");
      const checkpoint: CheckpointResource = {
        id: checkpointId,
        sandboxId: id,
        name: options.name ?? null,
        fidelity: record.fidelity as CheckpointResource["fidelity"],
        createdAt: createdAt.toISOString(),
        expiresAt: options.ttlMs ? new Date(createdAt.getTime() + options.ttlMs).toISOString() : null,
        ...size,
        pausedMs,
        isAutomatic,
        requirements,
      };
      const all = [...before, checkpoint];
      const dropped = surplusOf(all, options);
      const kept = all.filter((each) => !dropped.includes(each));
      const totals = checkpointTotals(kept);
      const after = { ...record, ...totals, state: options.stopAs ?? record.state };
      try {
        await capacity.countCheckpoints(record, totals, { isLimited });
        await state.commit({ record: after, requirements, checkpoints: kept });
      } catch (thrown) {
        await this.#discard(record, checkpoint, before);
        throw thrown;
      }
      options.onStep?.("committed");
      if (options.stopAs !== undefined) registry.change(id, { state: options.stopAs });
      this.#newest.set(live, { changes, checkpoint: checkpointId });
      live.notifySave("done");
      const removal = this.#removeAll(id, dropped);
      // Callers that wait for a stopped sandbox must not wait for the deletions.
      if (options.stopAs === undefined) await removal;
      return checkpoint;
    } catch (thrown) {
      live.notifySave("failed");
      if (sandbox.state === "stopped")
        await this.#restart(record, sandbox, { directory: scratch.path, saved: requirements });
      throw thrown;
    } finally {
      observeCheckpoint?.(record.provider, (clock.monotonicMs() - startedAtMs) / 1000);
    }
  }

  /** The newest checkpoint, if nothing can have changed since: no caller used the sandbox, and only its agent runs in it. */
  async #findUnchanged(
    id: SandboxId,
    checkpoints: readonly CheckpointResource[],
  ): Promise<CheckpointResource | undefined> {
    const { live, sandbox } = this.#options.registry.instance(id);
    const newest = this.#newest.get(live);
    if (newest === undefined || newest.changes !== live.changes) return undefined;
    const checkpoint = checkpoints.find((each) => each.id === newest.checkpoint);
    if (checkpoint === undefined || (await sandbox.metrics()).processes > 1) return undefined;
    return checkpoint;
  }

  /** Destroys the instance of a saved sandbox. Its record stays. */
  async retire({ id, provider }: SandboxRecord): Promise<void> {
    const { registry, providers } = this.#options;
    registry.detach(id);
    await providers.destroy(provider, id);
  }

  /** Removes everything of a sandbox that another node runs from now on, also what an instance left that ended by itself. */
  async forget({ id, provider }: SandboxRecord): Promise<void> {
    const { registry, providers } = this.#options;
    registry.detach(id);
    await providers.remove(provider, id);
  }

  /** Restores a checkpoint into a running sandbox. */
  async restore(
    record: SandboxRecord,
    checkpoint: CheckpointResource,
    options: RestoreOptions = {},
  ): Promise<SandboxRecord> {
    const { checkpointStore, providers } = this.#options;
    const { requirements } = checkpoint;
    const prepared = options.instance ?? providers.prepare(instanceKey(record, requirements), { id: record.id });
    // Awaited below; until then a rejection must not crash the node.
    prepared.catch(() => {});
    await using scratch = new AsyncDisposableStack();
    let path: string;
    try {
      const here = await this.requirements(record, { saved: requirements });
      requireRestorable(`checkpoint ${checkpoint.id}`, requirements, here);
      ({ path } = scratch.use(await checkpointStore.scratch()));
      await checkpointStore.load(record, checkpoint.id, path);
    } catch (thrown) {
      await (await prepared.catch(() => undefined))?.destroy();
      throw thrown;
    }
    options.onStep?.("loaded");
    return await this.restoreFrom(record, path, { ...options, saved: requirements, instance: prepared });
  }

  /** Restores the files of a checkpoint. The record must exist, and no instance may run for it. */
  async restoreFrom(
    record: SandboxRecord,
    directory: string,
    { instance, saved, onStep }: RestoreFilesOptions,
  ): Promise<SandboxRecord> {
    const { providers, registry, ownership, onError } = this.#options;
    const { id, createdAt } = record;
    const prepared = await (instance ?? providers.prepare(instanceKey(record, saved), { id }));
    const state = await ownership.state(id).catch(async (thrown) => {
      await prepared.destroy();
      throw thrown;
    });
    const before = state.content;
    const restoring = prepared.restore(directory, { createdAt, onRestored: () => onStep?.("restored") });
    // As soon as the sandbox runs, the store must not show it as stopped.
    const [restored, committed] = await Promise.allSettled([
      restoring,
      before && state.commit({ ...before, record: { ...record, state: "ready", failure: null } }),
    ]);
    if (restored.status === "rejected") {
      await (before && state.commit(before).catch((thrown) => onError(SandboxError.from(thrown), id)));
      throw restored.reason;
    }
    if (committed.status === "rejected") {
      await providers.destroy(record.provider, id);
      throw committed.reason;
    }
    onStep?.("connected");
    try {
      const ready = registry.change(id, { state: "ready", failure: null });
      await registry.attachWithProcesses(restored.value, ready);
      return ready;
    } catch (thrown) {
      // A sandbox whose restore is reported as failed must not keep running.
      await this.retire(record);
      throw thrown;
    }
  }

  requirements(record: SandboxRecord, options: RequirementsOptions): Promise<CheckpointRequirements> {
    return this.#options.providers.checkpointRequirements(record, options);
  }

  /** Deletes checkpoints that no state lists any more. A failure is harmless: they are unreachable already. */
  async #removeAll(id: SandboxId, checkpoints: readonly CheckpointResource[]): Promise<void> {
    const { checkpointStore, onError } = this.#options;
    for (const checkpoint of checkpoints) {
      await checkpointStore.remove(id, checkpoint.id).catch((thrown) => onError(SandboxError.from(thrown), id));
    }
  }

  /** Undoes a save that a quota or the store refused. */
  async #discard(record: SandboxRecord, refused: CheckpointResource, before: readonly CheckpointResource[]) {
    const { capacity, registry } = this.#options;
    const current = registry.record(record.id);
    if (current !== undefined) await capacity.countCheckpoints(current, checkpointTotals(before));
    await this.#removeAll(record.id, [refused]);
  }

  /** Restarts a sandbox from the files of a checkpoint that could not be stored after the sandbox had stopped. */
  async #restart(
    record: SandboxRecord,
    sandbox: Sandbox,
    { directory, saved }: { readonly directory: string; readonly saved: CheckpointRequirements },
  ): Promise<void> {
    const { onError, registry } = this.#options;
    try {
      await sandbox.destroy();
      await this.retire(record);
      await this.restoreFrom(record, directory, { saved });
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      onError(error, record.id);
      registry.fail(record, error);
    }
  }
}

/** The checkpoints to drop, from a list that is oldest first. An automatic checkpoint replaces only automatic ones. */
function surplusOf<Each extends Pick<CheckpointResource, "isAutomatic">>(
  checkpoints: readonly Each[],
  { keepLast, isAutomatic = false }: SaveOptions,
): readonly Each[] {
  if (keepLast === undefined) return [];
  return checkpoints.filter((each) => !isAutomatic || each.isAutomatic).slice(0, -keepLast);
}

function nameTaken(name: string): SandboxError {
  return new SandboxError("checkpoint_exists", {
    message: `the sandbox already has a checkpoint named ${name}`,
    details: { name },
  });
}
