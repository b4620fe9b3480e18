import { type Clock, SandboxError } from "@sandpiper/core";
import type {
  CheckpointResource,
  CreateCheckpointBody,
  RollbackBody,
  SandboxId,
  SandboxResource,
} from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { Ownership } from "../ownership/ownership.ts";
import { checkpointTotals, type SavedSandbox } from "../ownership/saved-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { Capacity } from "../sandboxes/capacity.ts";
import { DEFAULT_KEEP_LAST } from "../sandboxes/new-sandbox.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import { ended, notReady } from "../sandboxes/sandbox-errors.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import type { CheckpointStore } from "../store/checkpoint-store.ts";
import { cannotResume, checkpointInUse, hasMoved, noCheckpoint, noCheckpoints } from "./checkpoint-errors.ts";
import { findCheckpoint } from "./find-checkpoint.ts";
import { requireRestorable } from "./requirements.ts";
import type { RestoreOptions, SaveOptions, SaveRestore } from "./save-restore.ts";

export interface CheckpointsOptions {
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly capacity: Pick<Capacity, "reserve" | "countCheckpoints" | "requireRestore">;
  readonly saveRestore: SaveRestore;
  readonly checkpointStore: CheckpointStore;
  readonly ownership: Ownership;
  readonly clock: Clock;
  /** Receives a damaged checkpoint's error when an earlier checkpoint was restored instead. */
  readonly onDamaged: (error: SandboxError, id: SandboxId) => void;
}

/** Takes, lists and deletes checkpoints for callers; pauses, resumes and rolls back their sandboxes. */
export class Checkpoints {
  readonly #options: CheckpointsOptions;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
  }

  async create(principal: Principal, id: string, body: CreateCheckpointBody): Promise<CheckpointResource> {
    const record = this.#findCurrent(principal, id);
    const { name, ttlMs, keepLast, stop } = body;
    const stopAs = stop ? "paused" : undefined;
    return await this.#serialize(record.id, () => {
      this.#currentRecord(record);
      return this.#save(record.id, { name, ttlMs, keepLast, stopAs, isLimited: true });
    });
  }

  /** Takes a checkpoint for the sandbox's policy, if it still has one. */
  async createAutomatic(id: SandboxId): Promise<void> {
    await this.#serialize(id, async () => {
      const keepLast = this.#options.registry.running(id)?.record.checkpointPolicy?.keepLast;
      if (keepLast !== undefined) await this.#save(id, { isAutomatic: true, keepLast, isLimited: true });
    });
  }

  /** Newest first. */
  async list(principal: Principal, id: string): Promise<readonly CheckpointResource[]> {
    const record = this.find(principal, id, { readOnly: true });
    return (await this.#peek(record.id))?.checkpoints.toReversed() ?? [];
  }

  async get(principal: Principal, id: string, checkpoint: string): Promise<CheckpointResource> {
    const record = this.find(principal, id, { readOnly: true });
    return findCheckpoint(await this.#peek(record.id), checkpoint);
  }

  async remove(principal: Principal, id: string, wanted: string): Promise<void> {
    const record = this.find(principal, id, { readOnly: false });
    const { registry, ownership, checkpointStore, capacity } = this.#options;
    await this.#serialize(record.id, async () => {
      const state = await ownership.state(record.id);
      const checkpoint = findCheckpoint(state.content, wanted);
      const now = this.#currentRecord(record);
      const rest = state.content?.checkpoints.filter(({ id }) => id !== checkpoint.id) ?? [];
      if (
        (now.state === "paused" || now.state === "stopped") &&
        checkpoint.id === state.content?.checkpoints.at(-1)?.id
      ) {
        throw checkpointInUse(record.id, checkpoint.id);
      }
      await state.commit({ ...(state.content as SavedSandbox), checkpoints: rest });
      await capacity.countCheckpoints(now, checkpointTotals(rest));
      await checkpointStore.remove(record.id, checkpoint.id);
      registry.emit("checkpoint.deleted", record, { checkpoint: checkpoint.id });
    });
  }

  async pause(principal: Principal, id: string): Promise<SandboxResource> {
    const record = this.#findCurrent(principal, id);
    await this.pauseNow(record.id, { isLimited: true });
    return this.#options.access.resource(principal, this.#currentRecord(record));
  }

  /** Without `isLimited`, no quota keeps the sandbox from being saved. */
  async pauseNow(id: SandboxId, { isLimited = false } = {}): Promise<void> {
    const { registry } = this.#options;
    await this.#serialize(id, async () => {
      const record = registry.record(id);
      if (record === undefined || record.state === "paused") return;
      const keepLast = record.checkpointPolicy?.keepLast ?? DEFAULT_KEEP_LAST;
      await this.#save(id, { stopAs: "paused", isAutomatic: true, keepLast, isLimited });
      registry.emit("sandbox.paused", record);
    });
  }

  async resume(principal: Principal, id: string): Promise<SandboxResource> {
    const record = this.#findCurrent(principal, id);
    const ready = await this.#serialize(record.id, async () => {
      const current = this.#currentRecord(record);
      if (current.state === "ready") return current;
      if (current.stoppedAt !== null) throw notReady(current);
      if (current.state !== "paused" && current.state !== "stopped") throw cannotResume(current);
      return await this.#resume(current);
    });
    return this.#options.access.resource(principal, ready);
  }

  async rollback(principal: Principal, id: string, body: RollbackBody): Promise<SandboxResource> {
    const record = this.find(principal, id, { readOnly: false });
    // A failed sandbox counts against no limit.
    using _ = record.endedAt === null ? undefined : this.#options.capacity.reserve(record, record, 1);
    const ready = await this.#serialize(record.id, () => this.#rollBack(record, body.checkpoint));
    return this.#options.access.resource(principal, ready);
  }

  /**
   * Restores the newest readable checkpoint; the caller holds the sandbox's mutex. If the sandbox ran after that checkpoint, as
   * before a crash, this is a rollback.
   */
  async restoreNewest(record: SandboxRecord, options: RestoreOptions = {}): Promise<SandboxRecord> {
    const { saveRestore, registry, ownership, onDamaged } = this.#options;
    const saved = (await ownership.state(record.id)).content;
    const candidates = saved?.checkpoints.toReversed() ?? [];
    if (candidates.length === 0) throw noCheckpoint(record.id);
    const before = record.state;
    registry.change(record.id, { state: "restoring" });
    for (const [index, checkpoint] of candidates.entries()) {
      const isBehind = saved?.record.state === "ready" || index > 0;
      try {
        const target = isBehind ? this.#markRolledBack(record, checkpoint) : record;
        const ready = await saveRestore.restore(target, checkpoint, index === 0 ? options : {});
        if (isBehind) await this.#announceRollback(ready);
        return ready;
      } catch (thrown) {
        const error = SandboxError.from(thrown);
        if (error.reason === "checkpoint_damaged" && index + 1 < candidates.length) {
          onDamaged(error, record.id);
          continue;
        }
        await saveRestore.retire(record);
        const { rolledBackTo, rollbacks } = record;
        registry.change(record.id, { state: before === "restoring" ? "stopped" : before, rolledBackTo, rollbacks });
        throw error;
      }
    }
    throw noCheckpoint(record.id);
  }

  /** Restores a paused sandbox because a caller uses it. */
  async wake(id: SandboxId): Promise<void> {
    await this.#serialize(id, async () => {
      const record = this.#options.registry.record(id);
      if (record?.state === "paused") await this.#resume(record);
    });
  }

  /** Restores a sandbox that the node stopped. A paused one stays paused. */
  async restoreStopped(id: SandboxId): Promise<void> {
    await this.#serialize(id, async () => {
      const record = this.#options.registry.record(id);
      if (record?.state !== "stopped" || record.stoppedAt !== null) return;
      this.#options.capacity.requireRestore();
      await this.restoreNewest(record);
    });
  }

  /** Has the next use of a failed sandbox restore its newest checkpoint, if it has one and its owner wants this. */
  async recover(id: SandboxId): Promise<void> {
    const { registry, saveRestore } = this.#options;
    await this.#serialize(id, async () => {
      const record = registry.record(id);
      if (record?.state !== "failed" || record.onFailure !== "restore") return;
      if (((await this.#peek(id))?.checkpoints.length ?? 0) === 0) return;
      await saveRestore.retire(record);
      registry.change(id, { state: "stopped", endedAt: null });
    });
  }

  /** Deletes expired checkpoints. */
  async expire(): Promise<void> {
    const { registry, ownership, checkpointStore, capacity, clock } = this.#options;
    const now = clock.now().toISOString();
    for (const { id } of registry.current()) {
      const state = await ownership.state(id).catch(() => undefined);
      const expired = state?.content?.checkpoints.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= now);
      if (expired === undefined || expired.length === 0) continue;
      await this.#serialize(id, async () => {
        const current = await ownership.state(id);
        const removed = new Set(expired.map((checkpoint) => checkpoint.id));
        // The newest checkpoint is the only copy of a sandbox that does not run.
        if (registry.record(id)?.state !== "ready") removed.delete(current.content?.checkpoints.at(-1)?.id ?? "");
        const checkpoints = current.content?.checkpoints.filter((checkpoint) => !removed.has(checkpoint.id)) ?? [];
        await current.commit({ ...(current.content as SavedSandbox), checkpoints });
        const record = registry.record(id);
        if (record !== undefined) await capacity.countCheckpoints(record, checkpointTotals(checkpoints));
        for (const checkpoint of removed) await checkpointStore.remove(id, checkpoint);
      });
    }
  }

  /** The record of a sandbox that is not destroyed and whose provider supports checkpoints. */
  find(principal: Principal, id: string, options: { readonly readOnly: boolean }): SandboxRecord {
    const record = this.#options.access.find(principal, id, options);
    if (record.state === "destroyed") throw ended(record);
    if (record.fidelity === "none") throw noCheckpoints(record);
    return record;
  }

  async #resume(record: SandboxRecord): Promise<SandboxRecord> {
    const { registry, capacity, clock } = this.#options;
    capacity.requireRestore();
    const { expiresAt, ttlMs } = record;
    const now = clock.now();
    // Its lifetime begins again; otherwise the sandbox would be paused again at once.
    const isExpired = expiresAt !== null && expiresAt <= now && record.onExpiry === "pause";
    const lifetime = isExpired ? { expiresAt: new Date(now.getTime() + (ttlMs ?? 0)) } : {};
    const resumed = await this.restoreNewest(registry.change(record.id, lifetime));
    registry.emit("sandbox.resumed", record);
    return resumed;
  }

  #findCurrent(principal: Principal, id: string): SandboxRecord {
    const record = this.find(principal, id, { readOnly: false });
    if (record.endedAt !== null) throw ended(record);
    return record;
  }

  async #save(id: SandboxId, options: SaveOptions): Promise<CheckpointResource> {
    const { saveRestore, registry } = this.#options;
    const checkpoint = await saveRestore.save(id, options);
    const record = registry.record(id) as SandboxRecord;
    if (options.stopAs !== undefined) await saveRestore.retire(record);
    const { isAutomatic, pausedMs } = checkpoint;
    registry.emit("sandbox.checkpointed", record, { checkpoint: checkpoint.id, isAutomatic, pausedMs });
    return checkpoint;
  }

  /** Downloads the checkpoint first; meanwhile the sandbox keeps running. */
  async #rollBack(record: SandboxRecord, wanted: string | undefined): Promise<SandboxRecord> {
    const { saveRestore, checkpointStore, registry } = this.#options;
    if (this.#currentRecord(record).stoppedAt !== null) throw notReady(this.#currentRecord(record));
    this.#options.capacity.requireRestore();
    const saved = await this.#saved(record.id);
    // A failed sandbox lost no mistake that its owner wants to undo, so its newest checkpoint is the right one.
    const newest = record.endedAt === null ? undefined : saved?.checkpoints.at(-1)?.id;
    const checkpoint = findCheckpoint(saved, wanted ?? newest);
    const { requirements: required } = checkpoint;
    const here = await saveRestore.requirements(record, { saved: required });
    requireRestorable(`checkpoint ${checkpoint.id}`, required, here);
    await using scratch = await checkpointStore.scratch();
    await checkpointStore.load(record, checkpoint.id, scratch.path);
    if (registry.running(record.id) !== undefined) registry.instance(record.id).sandbox.halt();
    const { state, failure, endedAt } = this.#currentRecord(record);
    try {
      await saveRestore.retire(record);
      if (endedAt !== null)
        registry.change(record.id, { state: "restoring", endedAt: null, name: this.#freeName(record) });
      const target = this.#markRolledBack(this.#currentRecord(record), checkpoint);
      const ready = await saveRestore.restoreFrom(target, scratch.path, { saved: required });
      await this.#announceRollback(ready);
      return ready;
    } catch (thrown) {
      await saveRestore.retire(record);
      if (endedAt !== null) registry.change(record.id, { state: "failed", failure, endedAt });
      // Its next use restores the newest checkpoint.
      else registry.change(record.id, { state: state === "paused" ? "paused" : "stopped" });
      throw thrown;
    }
  }

  /** Another sandbox may have taken the name of a failed one. */
  #freeName({ tenant, name }: SandboxRecord): string | null {
    return name !== null && this.#options.registry.named(tenant, name) !== undefined ? null : name;
  }

  /** Records the rollback before callers can reach the sandbox, so that a client that reconnects sees it at once. */
  #markRolledBack(record: SandboxRecord, { id: checkpoint, createdAt }: CheckpointResource): SandboxRecord {
    const { registry, clock } = this.#options;
    const rolledBackTo = { checkpoint, createdAt, at: clock.now().toISOString() };
    return registry.change(record.id, { rolledBackTo, rollbacks: record.rollbacks + 1 });
  }

  async #announceRollback(record: SandboxRecord): Promise<void> {
    const { ownership, registry } = this.#options;
    const state = await ownership.state(record.id);
    await state.commit({ ...(state.content as SavedSandbox), record });
    registry.emit("sandbox.rolled_back", record, record.rolledBackTo ?? {});
  }

  /** The sandbox may have moved to another node while the caller waited for its mutex. */
  #currentRecord({ id }: SandboxRecord): SandboxRecord {
    const record = this.#options.registry.record(id);
    if (record === undefined) throw hasMoved(id);
    return record;
  }

  async #saved(id: SandboxId): Promise<SavedSandbox | undefined> {
    return (await this.#options.ownership.state(id)).content;
  }

  /** Also for a failed sandbox whose lease has ended. */
  #peek(id: SandboxId): Promise<SavedSandbox | undefined> {
    return this.#options.ownership.peek(id);
  }

  #serialize<T>(id: SandboxId, work: () => Promise<T>): Promise<T> {
    return this.#options.registry.serialize(id, work);
  }
}
