import { type Clock, pause, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { SaveRestore } from "../checkpoints/save-restore.ts";
import type { Stops } from "../containers/stops.ts";
import type { LeaseOwnership } from "../ownership/lease-ownership.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { DEFAULT_KEEP_LAST } from "../sandboxes/new-sandbox.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { forEachParallel } from "../store/for-each-parallel.ts";
import { type HandoffReport, HandoffSteps } from "./handoff-steps.ts";

/** Above this size, uploading a sandbox takes longer than saving it twice. */
const LARGE_BYTES = 64 * 1024 * 1024;
/** More concurrent saves would only slow each other down. */
const PARALLEL_DRAINS = 4;
const MAX_PREFETCH_MS = 5_000;

export interface HandoffSenderOptions {
  readonly registry: SandboxRegistry;
  readonly ownership: LeaseOwnership;
  readonly saveRestore: SaveRestore;
  readonly stops: Pick<Stops, "whileStarted">;
  readonly clock: Clock;
  readonly onError: (error: SandboxError, id: SandboxId) => void;
  readonly onHandoff?: ((report: HandoffReport) => void) | undefined;
}

interface SendOptions {
  readonly isWaitedFor: boolean;
  readonly onStep: HandoffSteps["mark"];
}

/** Hands off this node's sandboxes to other nodes. */
export class HandoffSender {
  readonly #options: HandoffSenderOptions;
  /** Sandboxes whose next owner is prefetching their live checkpoint. */
  readonly #prefetching = new Map<SandboxId, AbortController>();
  /** Calls that came before the node knew which sandboxes run here. */
  #early: (() => void)[] | undefined = [];

  constructor(options: HandoffSenderOptions) {
    this.#options = options;
    options.ownership.onWanted((id) => this.wanted(id));
    options.ownership.onLost((id) => this.#lost(id));
  }

  /** Call once the node knows which sandboxes run here. */
  open(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const call of early) call();
  }

  /** Call when the next owner has prefetched the sandbox's live checkpoint. */
  prefetched(id: SandboxId): void {
    this.#prefetching.get(id)?.abort();
  }

  /** Hands off all sandboxes. A sandbox that cannot be saved before the signal aborts stays here. */
  async drain(signal: AbortSignal): Promise<void> {
    const { registry, onError } = this.#options;
    await forEachParallel(registry.current(), PARALLEL_DRAINS, async ({ id }) => {
      if (!signal.aborted) await this.#send(id).catch((thrown) => onError(SandboxError.from(thrown), id));
    });
  }

  /** Call when another node waits for the sandbox. */
  wanted(id: SandboxId): void {
    if (this.#early !== undefined) return void this.#early.push(() => this.wanted(id));
    this.#send(id, { isWaitedFor: true }).catch((thrown) => this.#options.onError(SandboxError.from(thrown), id));
  }

  /** Stops a sandbox that another node owns by now. */
  #lost(id: SandboxId): void {
    if (this.#early !== undefined) return void this.#early.push(() => this.#lost(id));
    const { registry, saveRestore, ownership, onError } = this.#options;
    const record = registry.record(id);
    if (record === undefined) return;
    if (registry.running(id) !== undefined) registry.instance(id).sandbox.halt();
    registry
      .serialize(id, async () => {
        registry.drop(id);
        await saveRestore.forget(record);
        // Until now the lease guard also killed new instances of the sandbox; from now on it can run here again.
        ownership.unwatch(id);
      })
      .catch((thrown) => onError(SandboxError.from(thrown), id));
  }

  /** Saves the sandbox, releases its lease, and only then destroys its instance. */
  async #send(id: SandboxId, { isWaitedFor = false } = {}): Promise<void> {
    const { registry, stops, saveRestore, ownership, clock, onError, onHandoff } = this.#options;
    const { mark, stepsMs } = new HandoffSteps(clock);
    await registry.serialize(id, async () => {
      const record = registry.record(id);
      if (record === undefined) return;
      mark("begun");
      const save = () => this.#save(record, { isWaitedFor, onStep: mark });
      // The files of a container that its owner stopped are only here; the next owner keeps it stopped.
      await (record.stoppedAt === null ? save() : stops.whileStarted(record, save));
      // If the store is unreachable, the lease expires by itself.
      await ownership.release(id).catch((thrown) => onError(SandboxError.from(thrown), id));
      mark("released");
      try {
        registry.drop(id);
        registry.emit("sandbox.moved", record);
      } finally {
        await saveRestore.forget(record);
      }
      mark("ended");
      onHandoff?.({ id, side: "sender", stepsMs });
    });
  }

  async #save({ id, checkpointPolicy }: SandboxRecord, { isWaitedFor, onStep }: SendOptions): Promise<void> {
    const { registry, saveRestore } = this.#options;
    if (registry.running(id) === undefined) return;
    const keepLast = checkpointPolicy?.keepLast ?? DEFAULT_KEEP_LAST;
    if (isWaitedFor && (await this.#isLarge(id))) await this.#saveLive(id, keepLast);
    await saveRestore.save(id, { stopAs: "stopped", isAutomatic: true, keepLast, onStep });
  }

  /** Saves a large sandbox while it runs, so that the final save, which stops it, uploads only later changes. */
  async #saveLive(id: SandboxId, keepLast: number): Promise<void> {
    const { saveRestore, clock } = this.#options;
    const startedAtMs = clock.monotonicMs();
    const prefetched = new AbortController();
    this.#prefetching.set(id, prefetched);
    try {
      await saveRestore.save(id, { isAutomatic: true, keepLast });
      // A prefetch takes about as long as the save. The other node may have died, or may not report back.
      await pause(clock, Math.min(clock.monotonicMs() - startedAtMs, MAX_PREFETCH_MS), prefetched.signal);
    } finally {
      this.#prefetching.delete(id);
    }
  }

  async #isLarge(id: SandboxId): Promise<boolean> {
    const { sandbox } = this.#options.registry.instance(id);
    return await sandbox.metrics().then(
      ({ memoryUsedBytes, diskUsedBytes }) => memoryUsedBytes + diskUsedBytes > LARGE_BYTES,
      () => false,
    );
  }
}
