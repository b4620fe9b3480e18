import { type Clock, type Lease, type Leases, type PreparedSandbox, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Checkpoints } from "../checkpoints/checkpoints.ts";
import { requireRestorable } from "../checkpoints/requirements.ts";
import type { SaveRestore } from "../checkpoints/save-restore.ts";
import type { LeaseOwnership } from "../ownership/lease-ownership.ts";
import { recordAtRest, type SavedSandbox } from "../ownership/saved-sandbox.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { Capacity } from "../sandboxes/capacity.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import type { CheckpointStore } from "../store/checkpoint-store.ts";
import { type HandoffReport, HandoffSteps } from "./handoff-steps.ts";
import { Prefetch } from "./prefetch.ts";
import { Preparation } from "./preparation.ts";

/**
 * Whether a caller uses a sandbox, which wakes a paused one; manages it, which leaves it paused; or destroys it without
 * restoring it first.
 */
export type Purpose = "use" | "manage" | "end";

export interface HandoffReceiverOptions {
  readonly nodeId: string;
  readonly leases: Leases;
  /** Asks another node to look at a sandbox's lock now. */
  readonly nudge: (url: string, id: SandboxId) => Promise<void>;
  readonly ownership: LeaseOwnership;
  readonly capacity: Capacity;
  readonly registry: SandboxRegistry;
  readonly providers: Providers;
  readonly checkpoints: Checkpoints;
  readonly checkpointStore: CheckpointStore;
  readonly saveRestore: SaveRestore;
  readonly clock: Clock;
  readonly onHandoff?: ((report: HandoffReport) => void) | undefined;
}

interface FetchOptions {
  /** The owner's URL; null if other nodes cannot reach it. */
  readonly url: string | null;
  readonly purpose: Purpose;
  readonly steps: HandoffSteps;
  readonly takeover: boolean;
  readonly signal?: AbortSignal | undefined;
}

interface ReceiveOptions {
  readonly purpose: Purpose;
  readonly instance?: Promise<PreparedSandbox> | undefined;
  readonly steps?: HandoffSteps | undefined;
}

/** Brings sandboxes to this node, from another node or from the store. The caller holds the sandbox's mutex. */
export class HandoffReceiver {
  readonly #options: HandoffReceiverOptions;
  readonly #prepareTimes = new Map<string, number>();

  constructor(options: HandoffReceiverOptions) {
    this.#options = options;
  }

  /** Starts to measure a handoff. */
  measure(): HandoffSteps {
    return new HandoffSteps(this.#options.clock);
  }

  /** Takes a sandbox from its owner. */
  async fetch(saved: SavedSandbox, { url, purpose, takeover, signal, steps }: FetchOptions): Promise<void> {
    const { leases, nudge, onHandoff } = this.#options;
    const { id } = saved.record;
    steps.mark("located");
    if (purpose === "end") {
      const { lease } = await leases.wait(id, { takeover, signal });
      return await this.#receive(id, lease, { purpose });
    }
    await this.#requireRestorable(saved);
    // Without the nudge, the owner waits a little longer.
    const onFetched = () => void (url !== null && nudge(url, id).catch(() => {}));
    await using prefetch = new Prefetch(saved, { ...this.#options, onFetched });
    const onPrepared = () => steps.mark("prepared");
    const times = { prepareTimes: this.#prepareTimes, onPrepared };
    await using preparation = new Preparation(saved, { ...this.#options, ...times, signal });
    await preparation.headStart();
    const onRegistered = () => steps.mark("registered");
    const { lease } = await preparation.while((both) => leases.wait(id, { takeover, signal: both, onRegistered }));
    steps.mark("acquired");
    await prefetch.stop();
    await this.#receive(id, lease, { purpose, instance: preparation.take(), steps });
    steps.mark("running");
    onHandoff?.({ id, side: "receiver", stepsMs: steps.stepsMs });
  }

  /** Takes a sandbox that no live node owns: its owner released it or died. */
  async takeIn(id: SandboxId, saved: SavedSandbox, purpose: Purpose): Promise<void> {
    const { leases, nodeId } = this.#options;
    if (purpose !== "end") await this.#requireRestorable(saved);
    const acquired = await leases.acquire(id);
    if ("lease" in acquired) return await this.#receive(id, acquired.lease, { purpose });
    // Another node took the lease or waits for it. If it owns the sandbox by now, the caller locates it there.
    if (acquired.waiter !== null || acquired.owner === nodeId) throw underWay(id);
  }

  /** Drops the record and instance of a sandbox that this node no longer owns. */
  async forget(record: SandboxRecord): Promise<void> {
    const { ownership, registry, saveRestore } = this.#options;
    if (ownership.has(record.id) || registry.running(record.id) !== undefined) return;
    registry.drop(record.id);
    await saveRestore.retire(record);
    ownership.unwatch(record.id);
  }

  async #receive(id: SandboxId, lease: Lease, options: ReceiveOptions): Promise<void> {
    const { registry, nodeId } = this.#options;
    const { instance } = options;
    let restored: SandboxRecord | undefined;
    try {
      restored = await this.#settle(id, lease, options);
      if (restored === undefined) await destroyPrepared(instance);
    } catch (thrown) {
      await this.#letGo(id, lease, instance);
      throw thrown;
    }
    if (restored !== undefined) registry.emit("sandbox.moved", restored, { node: nodeId });
  }

  /** Resolves to undefined if this node owns the sandbox but does not run it. */
  async #settle(id: SandboxId, lease: Lease, options: ReceiveOptions): Promise<SandboxRecord | undefined> {
    const { ownership, registry, checkpoints, capacity } = this.#options;
    const { purpose, instance, steps } = options;
    const saved = await ownership.take(id, { lease });
    steps?.mark("claimed");
    if (saved === undefined) {
      await ownership.remove(id);
      throw noSuchSandbox(id);
    }
    const record: SandboxRecord = { ...recordAtRest(saved.record), epoch: lease.epoch };
    registry.drop(id);
    registry.add(record);
    capacity.hold(record);
    const staysPaused = record.state === "paused" && purpose !== "use";
    if (staysPaused || record.stoppedAt !== null || purpose === "end") return undefined;
    return await checkpoints.restoreNewest(record, { instance, onStep: steps?.mark });
  }

  /** Releases the sandbox for other nodes and destroys its instance here. */
  async #letGo(id: SandboxId, lease: Lease, instance: ReceiveOptions["instance"]): Promise<void> {
    const { ownership, registry, saveRestore } = this.#options;
    const record = registry.record(id);
    try {
      if (record !== undefined) await saveRestore.retire(record);
      await destroyPrepared(instance);
    } catch (thrown) {
      // A lease that is renewed without an owner would keep every node from the sandbox.
      if (!ownership.has(id)) lease.abandon();
      throw thrown;
    }
    await (ownership.has(id) ? ownership.release(id) : lease.release());
    ownership.unwatch(id);
    registry.drop(id);
  }

  /** Checked before the owner gives up the sandbox: a sandbox that this node cannot run stays there. */
  async #requireRestorable({ record, requirements }: SavedSandbox): Promise<void> {
    this.#options.capacity.requireRestore();
    const here = await this.#options.saveRestore.requirements(record, { saved: requirements });
    requireRestorable(`sandbox ${record.id}`, requirements, here);
  }
}

async function destroyPrepared(instance: ReceiveOptions["instance"]): Promise<void> {
  await (await instance?.catch(() => undefined))?.destroy();
}

function underWay(id: SandboxId): SandboxError {
  return new SandboxError("handoff_under_way", { message: `sandbox ${id} is being moved to another node` });
}
