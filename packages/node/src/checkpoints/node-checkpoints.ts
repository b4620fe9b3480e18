import { type Clock, type KeyedMutex, type PreparedSandbox, SandboxError } from "@sandpiper/core";
import {
  type CheckpointResource,
  type CreateCheckpointBody,
  type CreateSandboxBody,
  createSandboxId,
  type ForkBody,
  type RollbackBody,
  type SandboxId,
  type SandboxResource,
} from "@sandpiper/protocol";
import { mayAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { QuotaReservation } from "../cluster/shared-quotas.ts";
import type { EventLog } from "../events/event-log.ts";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import type { CheckpointService } from "../service/checkpoint-service.ts";
import { instanceKey } from "../service/instance-key.ts";
import type { LiveSandboxes } from "../service/live-sandboxes.ts";
import type { NodeService } from "../service/node-service.ts";
import type { Providers } from "../service/providers.ts";
import { cannotResume, noCheckpoint, noCheckpoints, onlyThere } from "./checkpoint-errors.ts";
import type { CheckpointVault } from "./checkpoint-vault.ts";
import type { Custody } from "./custody.ts";
import { forkOf } from "./fork-record.ts";
import { requireRestorable } from "./requirements.ts";
import { findCheckpoint, type Place, type SandboxSaver } from "./sandbox-saver.ts";
import type { SavedSandbox } from "./saved-sandbox.ts";
import type { FreePlace, SparePlaces } from "./spare-places.ts";

interface Forking {
  readonly forks: readonly SandboxRecord[];
  /** One for each. */
  readonly places: readonly FreePlace[];
  /** What each may take of a quota that nodes share. */
  readonly rooms: readonly QuotaReservation[];
  /** Where they begin; undefined: now. */
  readonly wanted: string | undefined;
}

export interface NodeCheckpointsOptions {
  readonly spares: SparePlaces;
  readonly service: NodeService;
  readonly saver: SandboxSaver;
  readonly vault: CheckpointVault;
  readonly custody: Custody;
  readonly turns: KeyedMutex<SandboxId>;
  readonly providers: Providers;
  readonly records: SandboxRecords;
  readonly live: LiveSandboxes;
  readonly events: EventLog;
  readonly clock: Clock;
  /** Told about a checkpoint that could not be read, where an earlier one could. */
  readonly onDamaged: (error: SandboxError, id: SandboxId) => void;
}

/** Checkpoints of the sandboxes that this node has. */
export class NodeCheckpoints implements CheckpointService {
  readonly #options: NodeCheckpointsOptions;

  constructor(options: NodeCheckpointsOptions) {
    this.#options = options;
  }

  async create(principal: Principal, id: string, body: CreateCheckpointBody): Promise<CheckpointResource> {
    const record = this.#find(principal, id, false);
    const { name, ttlMs, keepLast, stop } = body;
    const stopAs = stop ? "paused" : undefined;
    return await this.#inTurn(record.id, () => this.#save(record.id, { name, ttlMs, keepLast, stopAs }));
  }

  /** By policy. Nobody waits for it. */
  async createAutomatic(id: SandboxId): Promise<void> {
    const { live } = this.#options;
    await this.#inTurn(id, async () => {
      const keepLast = live.get(id)?.record.checkpointPolicy?.keepLast;
      if (keepLast !== undefined) await this.#save(id, { isAutomatic: true, keepLast });
    });
  }

  async list(principal: Principal, id: string): Promise<readonly CheckpointResource[]> {
    const record = this.#find(principal, id, true);
    return (await this.#saved(record.id))?.checkpoints.toReversed() ?? [];
  }

  async get(principal: Principal, id: string, checkpoint: string): Promise<CheckpointResource> {
    const record = this.#find(principal, id, true);
    return findCheckpoint(await this.#saved(record.id), checkpoint);
  }

  async remove(principal: Principal, id: string, wanted: string): Promise<void> {
    const record = this.#find(principal, id, false);
    const { custody, vault, events } = this.#options;
    await this.#inTurn(record.id, async () => {
      const state = await custody.state(record.id);
      const checkpoint = findCheckpoint(state.content, wanted);
      const { state: now } = this.#now(record);
      const rest = state.content?.checkpoints.filter(({ id }) => id !== checkpoint.id) ?? [];
      if ((now === "paused" || now === "stopped") && checkpoint.id === state.content?.checkpoints.at(-1)?.id) {
        throw onlyThere(record.id, checkpoint.id);
      }
      await state.commit({ ...(state.content as SavedSandbox), checkpoints: rest });
      await vault.remove(record.id, checkpoint.id);
      events.emit({
        kind: "checkpoint.deleted",
        tenant: record.tenant,
        sandboxId: record.id,
        details: { checkpoint: checkpoint.id },
      });
    });
  }

  async fork(principal: Principal, id: string, body: ForkBody): Promise<readonly SandboxResource[]> {
    const record = this.#find(principal, id, false);
    const { service, clock, events, spares } = this.#options;
    const count = body.count ?? 1;
    using _ = service.reserve(principal, record, count);
    using undo = new DisposableStack();
    const rooms: QuotaReservation[] = [];
    for (let k = 0; k < count; k++) {
      const room = await service.reserveShared(principal, record);
      if (room !== undefined) rooms.push(undo.use(room));
    }
    // Whoever forks it shares caches with their own sandboxes, not with its owner's.
    const key = instanceKey({ ...record, tenant: principal.tenant });
    const places = Array.from({ length: count }, () => spares.take(key));
    const forks = places.map(({ id }) => forkOf({ ...record, id }, principal, body, clock.now()));
    const made = await this.#inTurn(record.id, () =>
      this.#fork(record, { forks, places, rooms, wanted: body.checkpoint }),
    );
    spares.refill(key, count);
    for (const fork of made) {
      events.emit({ kind: "sandbox.forked", tenant: fork.tenant, sandboxId: fork.id, details: { from: record.id } });
    }
    return made.map((fork) => service.resource(principal, fork));
  }

  /** A new sandbox that begins where a checkpoint was taken, of whatever sandbox and on whatever node. */
  async createFrom(principal: Principal, body: CreateSandboxBody, checkpointId: string): Promise<SandboxResource> {
    const { service, clock, vault, custody, saver, providers } = this.#options;
    const source = await vault.sandboxOf(checkpointId);
    const saved = source === undefined ? undefined : await custody.peek(source);
    const isVisible = saved && mayAccess(principal, "sandbox", { readOnly: true, sandbox: saved.record });
    const checkpoint = findCheckpoint(isVisible ? saved : undefined, checkpointId);
    const record = saved?.record as SandboxRecord;
    using _ = service.reserve(principal, record, 1);
    requireRestorable(`checkpoint ${checkpointId}`, checkpoint.requirements, await saver.requirements(record));
    const fork = forkOf({ ...record, id: createSandboxId() }, principal, body, clock.now());
    using room = await service.reserveShared(principal, record);
    await room?.bind(fork.id);
    await using scratch = await vault.scratch();
    const place = await providers.prepare(instanceKey(fork), { id: fork.id });
    try {
      await vault.load(record.id, checkpointId, scratch.path);
    } catch (thrown) {
      await place.destroy();
      throw thrown;
    }
    return service.resource(principal, await this.#forkInto(fork, place, scratch.path));
  }

  async pause(principal: Principal, id: string): Promise<SandboxResource> {
    const { service } = this.#options;
    const record = this.#find(principal, id, false);
    await this.pauseNow(record.id);
    return service.resource(principal, this.#now(record));
  }

  async pauseNow(id: SandboxId): Promise<void> {
    const { records, events } = this.#options;
    await this.#inTurn(id, async () => {
      const record = records.get(id);
      if (record === undefined || record.state === "paused") return;
      await this.#save(id, { stopAs: "paused", isAutomatic: true, keepLast: record.checkpointPolicy?.keepLast ?? 3 });
      events.emit({ kind: "sandbox.paused", tenant: record.tenant, sandboxId: id });
    });
  }

  async resume(principal: Principal, id: string): Promise<SandboxResource> {
    const { service, events } = this.#options;
    const record = this.#find(principal, id, false);
    const ready = await this.#inTurn(record.id, async () => {
      const now = this.#now(record);
      if (now.state === "ready") return now;
      if (now.state !== "paused" && now.state !== "stopped") throw cannotResume(now);
      const resumed = await this.restoreNewest(now);
      events.emit({ kind: "sandbox.resumed", tenant: record.tenant, sandboxId: record.id });
      return resumed;
    });
    return service.resource(principal, ready);
  }

  async rollback(principal: Principal, id: string, body: RollbackBody): Promise<SandboxResource> {
    const { service } = this.#options;
    const record = this.#find(principal, id, false);
    const ready = await this.#inTurn(record.id, () => this.#rollBack(record, body.checkpoint));
    return service.resource(principal, ready);
  }

  /**
   * Restores the newest checkpoint that can be read; the caller has the sandbox's turn. When the sandbox had gone on after
   * that checkpoint, as before a crash, it is set back.
   */
  async restoreNewest(record: SandboxRecord, place?: Place): Promise<SandboxRecord> {
    const { saver, records, custody } = this.#options;
    const saved = (await custody.state(record.id)).content;
    const candidates = saved?.checkpoints.toReversed() ?? [];
    if (candidates.length === 0) throw noCheckpoint(record.id);
    const before = record.state;
    records.change(record.id, { state: "restoring" });
    for (const [index, checkpoint] of candidates.entries()) {
      const isBehind = saved?.record.state === "ready" || index > 0;
      try {
        const target = isBehind ? this.#setBack(record, checkpoint) : record;
        const ready = await saver.restore(target, checkpoint, index === 0 ? place : undefined);
        if (isBehind) await this.#tellRollback(ready);
        return ready;
      } catch (thrown) {
        const error = SandboxError.from(thrown);
        if (error.reason === "checkpoint_damaged" && index + 1 < candidates.length) {
          this.#options.onDamaged(error, record.id);
          continue;
        }
        await saver.retire(record);
        const { rolledBackTo, rollbacks } = record;
        records.change(record.id, { state: before === "restoring" ? "stopped" : before, rolledBackTo, rollbacks });
        throw error;
      }
    }
    throw noCheckpoint(record.id);
  }

  /** One that was stopped, and not by its owner's wish, goes on when it is used. */
  async awaken(id: SandboxId): Promise<void> {
    await this.#inTurn(id, async () => {
      const record = this.#options.records.get(id);
      if (record?.state === "stopped") await this.restoreNewest(record);
    });
  }

  /** Checkpoints whose time is over. */
  async expire(): Promise<void> {
    const { records, custody, vault, clock } = this.#options;
    const now = clock.now().toISOString();
    for (const { id } of records.live()) {
      const state = await custody.state(id).catch(() => undefined);
      const expired = state?.content?.checkpoints.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= now);
      if (expired === undefined || expired.length === 0) continue;
      await this.#inTurn(id, async () => {
        const current = await custody.state(id);
        const over = new Set(expired.map((checkpoint) => checkpoint.id));
        // What a sandbox that does not run consists of is not thrown away.
        if (records.get(id)?.state !== "ready") over.delete(current.content?.checkpoints.at(-1)?.id ?? "");
        const checkpoints = current.content?.checkpoints.filter((checkpoint) => !over.has(checkpoint.id)) ?? [];
        await current.commit({ ...(current.content as SavedSandbox), checkpoints });
        for (const checkpoint of over) await vault.remove(id, checkpoint);
      });
    }
  }

  async #save(id: SandboxId, options: Parameters<SandboxSaver["save"]>[1]): Promise<CheckpointResource> {
    const { saver, records, events } = this.#options;
    const checkpoint = await saver.save(id, options);
    const record = records.get(id) as SandboxRecord;
    if (options.stopAs !== undefined) await saver.retire(record);
    events.emit({
      kind: "sandbox.checkpointed",
      tenant: record.tenant,
      sandboxId: id,
      details: { checkpoint: checkpoint.id, isAutomatic: checkpoint.isAutomatic, pausedMs: checkpoint.pausedMs },
    });
    return checkpoint;
  }

  /** All, or none. Places are made while the original is being saved. */
  async #fork(record: SandboxRecord, { forks, places, rooms, wanted }: Forking): Promise<readonly SandboxRecord[]> {
    const { vault, saver, live, records, service } = this.#options;
    await using scratch = await vault.scratch();
    const prepared = places.map(({ place }) => place);
    const settled = Promise.allSettled(prepared);
    try {
      await Promise.all(rooms.map((room, k) => room.bind((forks[k] as SandboxRecord).id)));
      const running = live.get(record.id) === undefined ? undefined : live.require(record.id).sandbox;
      if (wanted === undefined && running !== undefined) {
        await running.checkpoint(scratch.path, { keepsRunning: true });
      } else {
        const checkpoint = findCheckpoint(await this.#saved(record.id), wanted);
        requireRestorable(`checkpoint ${checkpoint.id}`, checkpoint.requirements, await saver.requirements(record));
        await vault.load(record.id, checkpoint.id, scratch.path);
      }
      await Promise.all(prepared);
    } catch (thrown) {
      for (const place of await settled) if (place.status === "fulfilled") await place.value.destroy();
      throw thrown;
    }
    const outcomes = await Promise.allSettled(
      forks.map(async (fork, k) => this.#forkInto(fork, (await prepared[k]) as PreparedSandbox, scratch.path)),
    );
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed === undefined)
      return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<SandboxRecord>).value);
    for (const fork of forks) {
      const known = records.get(fork.id);
      if (known?.endedAt === null) await service.destroy(known, {});
    }
    throw failed.reason;
  }

  async #forkInto(fork: SandboxRecord, place: PreparedSandbox, directory: string): Promise<SandboxRecord> {
    const { records, service } = this.#options;
    try {
      records.add(fork);
    } catch (thrown) {
      await place.destroy();
      throw thrown;
    }
    try {
      return await this.#inTurn(fork.id, () => this.#bringUp(fork, place, directory));
    } catch (thrown) {
      await service.destroy(fork, {});
      throw thrown;
    }
  }

  async #bringUp(fork: SandboxRecord, place: PreparedSandbox, directory: string): Promise<SandboxRecord> {
    const { records, live, custody } = this.#options;
    // Whichever fails first, what the other one makes must be known before anything is undone.
    const [restored, begun] = await Promise.allSettled([
      place.restore(directory, { createdAt: fork.createdAt }),
      custody.begin({ ...fork, state: "ready" }),
    ]);
    if (restored.status === "rejected") throw restored.reason;
    if (begun.status === "rejected") throw begun.reason;
    const ready = records.change(fork.id, { state: "ready", epoch: begun.value });
    await live.followProcesses(live.add(restored.value, ready));
    return ready;
  }

  /** What can fail without harm comes first: until the checkpoint is here, the sandbox runs on. */
  async #rollBack(record: SandboxRecord, wanted: string | undefined): Promise<SandboxRecord> {
    const { saver, vault, live, records } = this.#options;
    const checkpoint = findCheckpoint(await this.#saved(record.id), wanted);
    requireRestorable(`checkpoint ${checkpoint.id}`, checkpoint.requirements, await saver.requirements(record));
    await using scratch = await vault.scratch();
    await vault.load(record.id, checkpoint.id, scratch.path);
    if (live.get(record.id) !== undefined) live.require(record.id).sandbox.halt();
    const { state } = this.#now(record);
    try {
      await saver.retire(record);
      const ready = await saver.restoreFrom(this.#setBack(this.#now(record), checkpoint), scratch.path);
      await this.#tellRollback(ready);
      return ready;
    } catch (thrown) {
      await saver.retire(record);
      // It does not run any more, and goes on from its newest checkpoint when it is used.
      records.change(record.id, { state: state === "paused" ? "paused" : "stopped" });
      throw thrown;
    }
  }

  /** Before it can be reached: whoever comes back must see at once that it has another past. */
  #setBack(record: SandboxRecord, { id: checkpoint, createdAt }: CheckpointResource): SandboxRecord {
    const { records, clock } = this.#options;
    const rolledBackTo = { checkpoint, createdAt, at: clock.now().toISOString() };
    return records.change(record.id, { rolledBackTo, rollbacks: record.rollbacks + 1 });
  }

  async #tellRollback(record: SandboxRecord): Promise<void> {
    const { custody, events } = this.#options;
    const state = await custody.state(record.id);
    await state.commit({ ...(state.content as SavedSandbox), record });
    const details = record.rolledBackTo ?? {};
    events.emit({ kind: "sandbox.rolled_back", tenant: record.tenant, sandboxId: record.id, details });
  }

  #find(principal: Principal, id: string, readOnly: boolean): SandboxRecord {
    const record = this.#options.service.find(principal, id, { readOnly });
    if (record.endedAt !== null) this.#options.service.requireNotEnded(record);
    if (record.fidelity === "none") throw noCheckpoints(record);
    return record;
  }

  /** As it is by now. */
  #now({ id }: SandboxRecord): SandboxRecord {
    const { records } = this.#options;
    return records.get(id) as SandboxRecord;
  }

  async #saved(id: SandboxId): Promise<SavedSandbox | undefined> {
    return (await this.#options.custody.state(id)).content;
  }

  #inTurn<T>(id: SandboxId, work: () => Promise<T>): Promise<T> {
    return this.#options.turns.run(id, work);
  }
}
