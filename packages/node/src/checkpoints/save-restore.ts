import { type Clock, type PreparedSandbox, type Sandbox, SandboxError } from "@sandpiper/core";
import type { CheckpointResource, SandboxId } from "@sandpiper/protocol";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import { instanceKey } from "../sandboxes/instance-key.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { LiveSandboxes } from "../sandboxes/sandbox-registry.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { CheckpointVault } from "../store/checkpoint-store.ts";
import type { Custody } from "../ownership/ownership.ts";
import { keepLast } from "./keep-last.ts";
import { requireRestorable } from "./requirements.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";

export interface SandboxSaverOptions {
  readonly providers: Providers;
  readonly records: SandboxRecords;
  readonly live: LiveSandboxes;
  readonly vault: CheckpointVault;
  readonly custody: Custody;
  readonly clock: Clock;
  readonly observeCheckpoint?: ((provider: string, seconds: number) => void) | undefined;
  /** Told about failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** Where a sandbox will run, made while it is still being saved or fetched. */
export type Place = Promise<PreparedSandbox>;

export interface SaveOptions {
  readonly name?: string | undefined;
  readonly ttlMs?: number | null | undefined;
  readonly isAutomatic?: boolean | undefined;
  /** How many of the same kind are kept, this one among them. */
  readonly keepLast?: number | undefined;
  /** What becomes of the sandbox afterwards; it goes on unless given. */
  readonly stopAs?: "paused" | "stopped" | undefined;
}

/** Saves sandboxes to the store and brings them back. Whoever calls it has the sandbox's turn. */
export class SandboxSaver {
  readonly #options: SandboxSaverOptions;
  /** What was saved last of a sandbox that runs here, and how much it had been used by then. */
  readonly #newest = new Map<
    SandboxId,
    { readonly live: LiveSandbox; readonly changes: number; readonly checkpoint: string }
  >();

  constructor(options: SandboxSaverOptions) {
    this.#options = options;
  }

  /** When it fails the sandbox runs on as before. */
  async save(id: SandboxId, options: SaveOptions): Promise<CheckpointResource> {
    const { vault, custody, live, records, clock, observeCheckpoint } = this.#options;
    const { sandbox, record, live: used } = live.require(id);
    const state = await custody.state(id);
    const before = state.content?.checkpoints ?? [];
    if (options.name !== undefined && before.some(({ name }) => name === options.name)) throw nameTaken(options.name);
    const requirements = await this.requirements(record);
    const startedAtMs = clock.monotonicMs();
    await using scratch = await vault.scratch();
    // Before anything is saved: everything up to this moment is in it.
    const createdAt = clock.now();
    const { changes } = used;
    used.tellSave("begun");
    try {
      const same = options.stopAs === undefined ? await this.#unchanged(id, before) : undefined;
      const { pausedMs } =
        same !== undefined
          ? { pausedMs: 0 }
          : await sandbox.checkpoint(scratch.path, { keepsRunning: options.stopAs === undefined });
      const checkpointId = crypto.randomUUID();
      const size =
        same === undefined
          ? await vault.save(id, checkpointId, scratch.path)
          : { sizeBytes: same.sizeBytes, uploadedBytes: await vault.copy(id, same.id, checkpointId) };
      const checkpoint: CheckpointResource = {
        id: checkpointId,
        sandboxId: id,
        name: options.name ?? null,
        fidelity: record.fidelity as CheckpointResource["fidelity"],
        createdAt: createdAt.toISOString(),
        expiresAt: options.ttlMs ? new Date(createdAt.getTime() + options.ttlMs).toISOString() : null,
        ...size,
        pausedMs,
        isAutomatic: options.isAutomatic ?? false,
        requirements,
      };
      const all = [...before, checkpoint];
      const last = options.keepLast;
      const { kept, dropped } =
        last === undefined
          ? { kept: all, dropped: [] }
          : keepLast(all, last, ({ isAutomatic }) => !options.isAutomatic || isAutomatic);
      const after = { ...record, state: options.stopAs ?? record.state };
      await state.commit({ record: after, requirements, checkpoints: kept });
      if (options.stopAs !== undefined) records.change(id, { state: options.stopAs });
      this.#newest.set(id, { live: used, changes, checkpoint: checkpointId });
      used.tellSave("done");
      const removal = this.#removeAll(id, dropped);
      // Whoever waits for a sandbox that was stopped does not wait for this.
      if (options.stopAs === undefined) await removal;
      return checkpoint;
    } catch (thrown) {
      used.tellSave("failed");
      if (sandbox.state === "stopped") await this.#bringBack(record, sandbox, scratch.path);
      throw thrown;
    } finally {
      observeCheckpoint?.(record.provider, (clock.monotonicMs() - startedAtMs) / 1000);
    }
  }

  /**
   * The newest checkpoint, if nothing can have changed since: nobody has used the sandbox, and nothing runs in it but its
   * agent.
   */
  async #unchanged(id: SandboxId, checkpoints: readonly CheckpointResource[]): Promise<CheckpointResource | undefined> {
    const newest = this.#newest.get(id);
    const { live, sandbox } = this.#options.live.require(id);
    if (newest?.live !== live || newest.changes !== live.changes) return undefined;
    const checkpoint = checkpoints.find((each) => each.id === newest.checkpoint);
    if (checkpoint === undefined || (await sandbox.metrics()).processes > 1) return undefined;
    return checkpoint;
  }

  /** Ends the instance of a sandbox that has been saved, and everything this node knows of it but its record. */
  async retire({ id, provider }: SandboxRecord): Promise<void> {
    const { live, providers } = this.#options;
    live.remove(id);
    this.#newest.delete(id);
    await providers.destroy(provider, id);
  }

  /** From a checkpoint to a sandbox that runs here; when it cannot be restored, the reason says what differs. */
  async restore(record: SandboxRecord, checkpoint: CheckpointResource, place?: Place): Promise<SandboxRecord> {
    const { vault, providers } = this.#options;
    const prepared = place ?? providers.prepare(instanceKey(record), { id: record.id });
    // Whoever waits for it is told, and until then nobody does.
    prepared.catch(() => {});
    await using scratch = new AsyncDisposableStack();
    let path: string;
    try {
      requireRestorable(`checkpoint ${checkpoint.id}`, checkpoint.requirements, await this.requirements(record));
      ({ path } = scratch.use(await vault.scratch()));
      await vault.load(checkpoint.sandboxId, checkpoint.id, path);
    } catch (thrown) {
      await (await prepared.catch(() => undefined))?.destroy();
      throw thrown;
    }
    return await this.restoreFrom(record, path, prepared);
  }

  /** From the files of a checkpoint. The record is in the records already, and nothing runs for it. */
  async restoreFrom(record: SandboxRecord, directory: string, place?: Place): Promise<SandboxRecord> {
    const { providers, live, records, custody, onError } = this.#options;
    const { id, createdAt } = record;
    const prepared = await (place ?? providers.prepare(instanceKey(record), { id }));
    const state = await custody.state(id).catch(async (thrown) => {
      await prepared.destroy();
      throw thrown;
    });
    const before = state.content;
    const restoring = prepared.restore(directory, { createdAt });
    // From the moment at which it runs, what is saved is not all there is of it.
    const [restored, committed] = await Promise.allSettled([
      restoring,
      before && state.commit({ ...before, record: { ...record, state: "ready" } }),
    ]);
    if (restored.status === "rejected") {
      await (before && state.commit(before).catch((thrown) => onError(SandboxError.from(thrown), id)));
      throw restored.reason;
    }
    if (committed.status === "rejected") {
      await providers.destroy(record.provider, id);
      throw committed.reason;
    }
    try {
      const ready = records.change(id, { state: "ready" });
      await live.followProcesses(live.add(restored.value, ready));
      return ready;
    } catch (thrown) {
      // What everybody is told to have failed must not run on.
      await this.retire(record);
      throw thrown;
    }
  }

  /** What is saved of it has its new name, labels and lifetimes, too. */
  async saveRecord(record: SandboxRecord): Promise<void> {
    const state = await this.#options.custody.state(record.id);
    if (state.content === undefined) return;
    // Whether it had gone on after its newest checkpoint is for whoever restores it to know.
    const { state: before } = state.content.record;
    await state.commit({ ...state.content, record: { ...record, state: before } });
  }

  /** Nothing that was saved of it is left. */
  async forget(id: SandboxId): Promise<void> {
    const { vault, custody } = this.#options;
    this.#newest.delete(id);
    vault.forget(id);
    // What was never this node's has left nothing, or is another's.
    if (!custody.has(id)) return;
    await vault.removeAll(id);
    await custody.remove(id);
  }

  requirements(record: SandboxRecord): Promise<Readonly<Record<string, string>>> {
    return this.#options.providers.checkpointRequirements(instanceKey(record));
  }

  /** Checkpoints that no state names any more; what cannot be deleted now is unreachable all the same. */
  async #removeAll(id: SandboxId, checkpoints: readonly CheckpointResource[]): Promise<void> {
    const { vault, onError } = this.#options;
    for (const checkpoint of checkpoints) {
      await vault.remove(id, checkpoint.id).catch((thrown) => onError(SandboxError.from(thrown), id));
    }
  }

  /** It was stopped, and could not be kept: the files of its checkpoint are still here. */
  async #bringBack(record: SandboxRecord, sandbox: Sandbox, directory: string): Promise<void> {
    const { onError, records, clock } = this.#options;
    try {
      await sandbox.destroy();
      await this.retire(record);
      await this.restoreFrom(record, directory);
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      onError(error, record.id);
      const { code, reason, message } = error;
      records.change(record.id, { state: "failed", failure: { code, reason, message }, endedAt: clock.now() });
    }
  }
}

/** A checkpoint by its id or its name; the newest when nothing is asked for. */
export function findCheckpoint(saved: SavedSandbox | undefined, wanted: string | undefined): CheckpointResource {
  const checkpoints = saved?.checkpoints ?? [];
  const found =
    wanted === undefined
      ? checkpoints.at(-1)
      : checkpoints.find(({ id, name }) => id === wanted || (name !== null && name === wanted));
  if (found !== undefined) return found;
  throw new SandboxError("not_found", {
    reason: "no_such_checkpoint",
    message: wanted === undefined ? "the sandbox has no checkpoint" : `the sandbox has no checkpoint ${wanted}`,
    hint: "list its checkpoints to see those there are",
  });
}

function nameTaken(name: string): SandboxError {
  return new SandboxError("already_exists", {
    reason: "checkpoint_exists",
    message: `the sandbox has a checkpoint named ${name}`,
    hint: "use another name, or delete that one first",
    details: { name },
  });
}
