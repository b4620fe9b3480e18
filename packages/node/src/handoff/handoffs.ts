import {
  type Clock,
  type KeyedMutex,
  type Lease,
  type Leases,
  type LockView,
  type PreparedSandbox,
  pause,
  SandboxError,
} from "@sandpiper/core";
import { isSandboxId, type SandboxId, type SandboxResource } from "@sandpiper/protocol";
import { mayAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { CheckpointVault } from "../checkpoints/checkpoint-vault.ts";
import type { BringOptions, Found, Locator, Purpose, Whereabout } from "../checkpoints/locator.ts";
import type { NodeCheckpoints } from "../checkpoints/node-checkpoints.ts";
import { requireRestorable } from "../checkpoints/requirements.ts";
import type { SandboxSaver } from "../checkpoints/sandbox-saver.ts";
import { recordAtRest, type SavedSandbox } from "../checkpoints/saved-sandbox.ts";
import type { SharedQuotas } from "../cluster/shared-quotas.ts";
import type { EventLog } from "../events/event-log.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import { instanceKey } from "../service/instance-key.ts";
import type { LiveSandboxes } from "../service/live-sandboxes.ts";
import type { Providers } from "../service/providers.ts";
import type { ClusterCustody } from "./cluster-custody.ts";
import { FetchAhead } from "./fetch-ahead.ts";

/** How many automatic checkpoints a sandbox without a policy keeps. */
const KEPT = 3;
/** Without a turn that is taken, nothing is under way for them. */
const RESTING: readonly SandboxRecord["state"][] = ["ready", "stopped", "paused", "restoring"];
/** From here on sending it to the store takes longer than saving it twice. */
const LARGE_BYTES = 64 * 1024 * 1024;
/** So many are saved at once when the node drains: more would only make each of them slower. */
const DRAINS_AT_ONCE = 4;
const LONGEST_FETCH_MS = 5_000;

export interface HandoffsOptions {
  readonly nodeId: string;
  readonly leases: Leases;
  /** Has another node look at a sandbox now. */
  readonly nudge: (url: string, id: SandboxId) => Promise<void>;
  readonly custody: ClusterCustody;
  readonly quotas: Pick<SharedQuotas, "hold">;
  readonly checkpoints: NodeCheckpoints;
  readonly vault: CheckpointVault;
  readonly clock: Clock;
  readonly saver: SandboxSaver;
  readonly turns: KeyedMutex<SandboxId>;
  readonly providers: Providers;
  readonly records: SandboxRecords;
  readonly live: LiveSandboxes;
  readonly events: EventLog;
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

const here: Whereabout = { kind: "here" };

interface FindOptions {
  readonly purpose: Exclude<Purpose, "look">;
  readonly onWaiting?: (() => void) | undefined;
}

interface ReceiveOptions extends Pick<FindOptions, "purpose"> {
  readonly place?: PreparedSandbox | undefined;
}

/** Brings sandboxes to this node and gives them to others. */
export class Handoffs implements Locator {
  readonly #options: HandoffsOptions;
  #isDraining = false;
  /** Sandboxes that another node is fetching what was saved of. */
  readonly #fetched = new Map<SandboxId, AbortController>();
  /** What happened to sandboxes before it was known which of them run here. */
  #early: (() => void)[] | undefined = [];

  constructor(options: HandoffsOptions) {
    this.#options = options;
  }

  locate(principal: Principal, id: string, purpose: Purpose = "use"): Promise<Found> | undefined {
    const { live, records } = this.#options;
    if (live.get(id as SandboxId) !== undefined) return undefined;
    if (purpose !== "look") return this.#find(principal, id, { purpose });
    return records.get(id as SandboxId) === undefined ? this.#look(principal, id) : undefined;
  }

  setAttached(id: SandboxId, isAttached: boolean): void {
    const { custody, onError } = this.#options;
    custody.setAttached(id, isAttached).catch((thrown) => onError(SandboxError.from(thrown), id));
  }

  async bring(principal: Principal, id: string, options: BringOptions): Promise<SandboxResource> {
    const { live, custody, turns, checkpoints } = this.#options;
    if (live.get(id as SandboxId) !== undefined) return await checkpoints.resume(principal, id);
    const where = await this.#find(principal, id, { purpose: "use", onWaiting: options.onWaiting });
    if (where.kind === "node") {
      if (this.#isDraining) throw draining(id);
      const saved = await custody.peek(id as SandboxId);
      if (saved === undefined || !mayAccess(principal, "sandbox", { readOnly: false, sandbox: saved.record })) {
        throw noSuchSandbox(id);
      }
      options.onWaiting?.();
      await turns.run(id as SandboxId, () => this.#fetch(saved, where.url, options));
    }
    return await checkpoints.resume(principal, id);
  }

  /** From now on it is known what runs here: one that is not seen to run does not. */
  open(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const happened of early) happened();
  }

  /** Another node waits for it. */
  wanted(id: SandboxId): void {
    if (this.#early !== undefined) return void this.#early.push(() => this.wanted(id));
    this.#giveUp(id, { isWaitedFor: true }).catch((thrown) => this.#options.onError(SandboxError.from(thrown), id));
  }

  /** Another node says that it has fetched what was saved of it. */
  nudged(id: SandboxId): void {
    this.#fetched.get(id)?.abort();
  }

  /** It is another node's by now: what still runs here must end, and nothing of it may be kept. */
  lost(id: SandboxId): void {
    if (this.#early !== undefined) return void this.#early.push(() => this.lost(id));
    const { live, turns, saver, records, custody, onError } = this.#options;
    const record = records.get(id);
    if (record === undefined) return;
    const entry = live.get(id) === undefined ? undefined : live.require(id);
    if (entry?.sandbox.state === "ready") entry.sandbox.halt();
    turns
      .run(id, async () => {
        records.remove(id);
        await saver.retire(record);
        // Until now whatever came up in its place was ended, too; from here on it may come back.
        custody.unwatch(id);
      })
      .catch((thrown) => onError(SandboxError.from(thrown), id));
  }

  /** Leaves everything to other nodes. Rejects with what could not be saved in time; that stays where it is. */
  async drain(signal: AbortSignal): Promise<void> {
    const { records, onError } = this.#options;
    // Clients come back at once, and must not bring here again what has just left.
    this.#isDraining = true;
    const queue = records.live().values();
    const worker = async () => {
      for (const { id } of queue) {
        if (signal.aborted) return;
        await this.#giveUp(id).catch((thrown) => onError(SandboxError.from(thrown), id));
      }
    };
    await Promise.all(Array.from({ length: DRAINS_AT_ONCE }, worker));
  }

  /** Saves it, gives its lease back, and only then ends what ran here. */
  async #giveUp(id: SandboxId, { isWaitedFor = false } = {}): Promise<void> {
    const { live, turns, saver, custody, records, events, onError } = this.#options;
    await turns.run(id, async () => {
      const record = records.get(id);
      if (record === undefined) return;
      if (live.get(id) !== undefined) {
        const keepLast = record.checkpointPolicy?.keepLast ?? KEPT;
        if (isWaitedFor && (await this.#isLarge(id))) await this.#saveAhead(id, keepLast);
        await saver.save(id, { stopAs: "stopped", isAutomatic: true, keepLast });
      }
      // When the store cannot be told, the lease ends by its time.
      await custody.release(id).catch((thrown) => onError(SandboxError.from(thrown), id));
      try {
        records.remove(id);
        events.emit({ kind: "sandbox.moved", tenant: record.tenant, sandboxId: id });
      } finally {
        await saver.retire(record);
      }
    });
  }

  /**
   * Most of it goes to the store, and from there to the node that waits for it, while it still runs: it stands still only for
   * what has changed meanwhile.
   */
  async #saveAhead(id: SandboxId, keepLast: number): Promise<void> {
    const { saver, clock } = this.#options;
    const startedAtMs = clock.monotonicMs();
    const fetched = new AbortController();
    this.#fetched.set(id, fetched);
    try {
      await saver.save(id, { isAutomatic: true, keepLast });
      // To fetch it takes about as long as to save it; the other node may be gone, or not know how to tell.
      await pause(clock, Math.min(clock.monotonicMs() - startedAtMs, LONGEST_FETCH_MS), fetched.signal);
    } finally {
      this.#fetched.delete(id);
    }
  }

  async #isLarge(id: SandboxId): Promise<boolean> {
    const { sandbox } = this.#options.live.require(id);
    return await sandbox.metrics().then(
      ({ memoryUsedBytes, diskUsedBytes }) => memoryUsedBytes + diskUsedBytes > LARGE_BYTES,
      () => false,
    );
  }

  /** Its lease is gone, and what became of it since is in the store alone. One that failed is told about until it is destroyed. */
  #isAbandoned({ id, state, endedAt }: SandboxRecord, purpose: FindOptions["purpose"]): boolean {
    if (this.#options.custody.has(id)) return false;
    return endedAt === null ? RESTING.includes(state) : state === "failed" && purpose === "end";
  }

  async #forget(record: SandboxRecord): Promise<void> {
    const { custody, live, records, saver } = this.#options;
    if (custody.has(record.id) || live.get(record.id) !== undefined) return;
    records.remove(record.id);
    await saver.retire(record);
    custody.unwatch(record.id);
  }

  /** One that rests in the store, or has lost its node, is seen there and stays there. */
  async #look(principal: Principal, id: string): Promise<Found> {
    const { records, leases, custody } = this.#options;
    const lock = isSandboxId(id) ? await leases.read(id) : undefined;
    if (lock === undefined) return here;
    const owner = this.#owner(lock);
    if (owner !== undefined) return owner;
    const saved = await custody.peek(id as SandboxId);
    // It may have come here in between.
    if (records.get(id as SandboxId) !== undefined || !isVisible(principal, saved)) return here;
    return { kind: "store", saved: { ...saved, record: recordAtRest(saved.record) } };
  }

  /** Another node that has it and lives. */
  #owner({ isLive, owner, url }: LockView): Whereabout | undefined {
    if (!isLive || owner === null || owner === this.#options.nodeId || url === null) return undefined;
    return { kind: "node", id: owner, url };
  }

  /** Waits for what is on its way, and takes in what rests in the store or has lost its node. */
  async #find(principal: Principal, id: string, { purpose, onWaiting }: FindOptions): Promise<Whereabout> {
    const { live, turns, records, leases, custody, checkpoints } = this.#options;
    if (!isSandboxId(id)) return here;
    for (;;) {
      await turns.free(id);
      if (live.get(id) !== undefined) return here;
      const record = records.get(id);
      if (record !== undefined && !this.#isAbandoned(record, purpose)) {
        const isVisible = mayAccess(principal, "sandbox", { readOnly: true, sandbox: record });
        if (isVisible && (record.state === "stopped" || record.state === "paused")) onWaiting?.();
        if (isVisible && record.state === "stopped" && purpose === "use") await checkpoints.awaken(id);
        return here;
      }
      const lock = await leases.read(id);
      if (lock === undefined && record?.endedAt !== null) return here;
      if (record !== undefined) {
        await turns.run(id, () => this.#forget(record));
        continue;
      }
      if (lock === undefined) return here;
      const owner = this.#owner(lock);
      if (owner !== undefined) return owner;
      const saved = await custody.peek(id);
      if (!isVisible(principal, saved)) return here;
      if (this.#isDraining) throw draining(id);
      onWaiting?.();
      await turns.run(id, () => this.#takeIn(id, saved, purpose));
    }
  }

  /** From its owner, whom it is asked of only when there is a place for it: until then it runs on there. */
  async #fetch(saved: SavedSandbox, url: string, { takeover, signal }: BringOptions): Promise<void> {
    const { leases, providers, nudge } = this.#options;
    const { id } = saved.record;
    await this.#requireRestorable(saved);
    const place = await providers.prepare(instanceKey(saved.record), { id, signal });
    // A nudge that is lost costs the owner a little time.
    const onFetched = () => void nudge(url, id).catch(() => {});
    await using ahead = new FetchAhead(saved, { ...this.#options, onFetched });
    let lease: Lease;
    try {
      ({ lease } = await leases.wait(id, { takeover, signal }));
    } catch (thrown) {
      await place.destroy();
      throw thrown;
    }
    await ahead.stop();
    await this.#receive(id, lease, { purpose: "use", place });
  }

  /** Nobody has it: it was saved and given back, or its owner has died. */
  async #takeIn(id: SandboxId, saved: SavedSandbox, purpose: FindOptions["purpose"]): Promise<void> {
    const { leases, nodeId } = this.#options;
    if (purpose === "use") await this.#requireRestorable(saved);
    const acquired = await leases.acquire(id);
    if ("lease" in acquired) return await this.#receive(id, acquired.lease, { purpose });
    // Another node was faster, or is waiting for it; one that has it is asked next.
    if (acquired.waiter !== null || acquired.owner === nodeId) throw onItsWay(id);
  }

  async #receive(id: SandboxId, lease: Lease, { purpose, place }: ReceiveOptions): Promise<void> {
    const { events, nodeId } = this.#options;
    let restored: SandboxRecord | undefined;
    try {
      restored = await this.#settle(id, lease, { purpose, place });
      if (restored === undefined) await place?.destroy();
    } catch (thrown) {
      await this.#letGo(id, lease, place);
      throw thrown;
    }
    if (restored === undefined) return;
    events.emit({ kind: "sandbox.moved", tenant: restored.tenant, sandboxId: id, details: { node: nodeId } });
  }

  /** Undefined: it is this node's now, and does not run. */
  async #settle(id: SandboxId, lease: Lease, { purpose, place }: ReceiveOptions): Promise<SandboxRecord | undefined> {
    const { custody, records, checkpoints, quotas } = this.#options;
    const saved = await custody.take(id, { lease });
    if (saved === undefined) {
      await custody.remove(id);
      throw noSuchSandbox(id);
    }
    const record: SandboxRecord = { ...recordAtRest(saved.record), epoch: lease.epoch };
    records.remove(id);
    records.add(record);
    quotas.hold(record.keyId, id, { sandboxes: 1, memoryMib: record.memoryMib, vcpuCount: record.vcpuCount });
    if (record.state === "paused" || purpose === "end") return undefined;
    return await checkpoints.restoreNewest(record, place && Promise.resolve(place));
  }

  /** Others may be able to, and what is saved is not this node's to lose; but nothing of it may run here then. */
  async #letGo(id: SandboxId, lease: Lease, place: PreparedSandbox | undefined): Promise<void> {
    const { custody, records, saver } = this.#options;
    const record = records.get(id);
    if (record !== undefined) await saver.retire(record);
    await place?.destroy();
    await (custody.has(id) ? custody.release(id) : lease.release());
    custody.unwatch(id);
    records.remove(id);
  }

  /** Before anything is asked of its owner: a sandbox that cannot run here stays where it is. */
  async #requireRestorable({ record, requirements }: SavedSandbox): Promise<void> {
    const { saver } = this.#options;
    requireRestorable(`sandbox ${record.id}`, requirements, await saver.requirements(record));
  }
}

function isVisible(principal: Principal, saved: SavedSandbox | undefined): saved is SavedSandbox {
  return saved !== undefined && mayAccess(principal, "sandbox", { readOnly: true, sandbox: saved.record });
}

function draining(id: string): SandboxError {
  return new SandboxError("unavailable", {
    reason: "sandbox_moved",
    message: `this node is being drained, and takes sandbox ${id} in no more`,
    hint: "ask another node, which then restores it",
  });
}

function onItsWay(id: SandboxId): SandboxError {
  return new SandboxError("unavailable", {
    reason: "handoff_under_way",
    message: `sandbox ${id} is on its way to a node`,
    hint: "ask again a little later",
  });
}
