import { type Clock, pause, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { KeyedMutex } from "../keyed-mutex.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { fencedStateSchema, stateKey } from "./fenced-state.ts";
import { HeldLease } from "./held-lease.ts";
import { JsonObject, type Versioned } from "./json-object.ts";
import type { Lease } from "./lease.ts";
import { sandboxDestroyed } from "./lease-errors.ts";
import { type LeaseTiming, type LeaseTimingOptions, leaseTiming } from "./lease-timing.ts";
import { type Lock, type LockView, lockKey, lockSchema, viewLock } from "./lock.ts";
import { LockBid, type PreviousLease } from "./lock-bid.ts";
import { LockWait } from "./lock-wait.ts";
import { currentMoment, type Moment } from "./moment.ts";

/** After this many failures of the store, an acquisition rejects. */
const TRIES = 3;

export interface LeasesOptions extends LeaseTimingOptions {
  readonly store: ObjectStore;
  /** The id stays the same over restarts. Without a URL, the node gets no nudges and finds waiters when it renews. */
  readonly node: { readonly id: string; readonly url: string | null };
  readonly clock: Clock;
  /** Nudges the node at that URL, which then calls its own `poke`. */
  readonly nudge: (url: string, sandbox: SandboxId) => Promise<void>;
  /** Receives background failures, which are retried. */
  readonly onError: (error: unknown) => void;
}

export interface Acquisition {
  readonly lease: Lease;
  readonly previous: PreviousLease;
}

export interface WaitOptions {
  /** Take the sandbox over from an attached client. */
  readonly takeover: boolean;
  readonly signal?: AbortSignal | undefined;
  /** The default covers an owner that saves the sandbox, and one that crashes and loses its lease. */
  readonly patienceMs?: number | undefined;
  /** Called when the registration is in the lock. */
  readonly onRegistered?: (() => void) | undefined;
}

/** Which node runs which sandbox, decided by compare-and-swap on one object for each sandbox. */
export class Leases implements Disposable {
  readonly timing: LeaseTiming;
  readonly #options: LeasesOptions;
  readonly #held = new Map<SandboxId, HeldLease>();
  readonly #waits = new Map<SandboxId, Set<LockWait>>();
  readonly #mutex = new KeyedMutex<SandboxId>();
  readonly #end = new AbortController();

  constructor(options: LeasesOptions) {
    this.timing = leaseTiming(options);
    this.#options = options;
  }

  /** The lease that this program holds, if any. */
  held(id: SandboxId): Lease | undefined {
    return this.#held.get(id);
  }

  /** Undefined if the sandbox never had a lease, or was destroyed. */
  async read(id: SandboxId): Promise<LockView | undefined> {
    const stored = await this.#lock(id).read();
    return stored && this.#view(stored);
  }

  /**
   * Acquires the lease if that is possible immediately: it is new, released, expired, or held by an earlier process of this
   * node. Otherwise returns its owner and waiter.
   */
  acquire(id: SandboxId): Promise<Acquisition | LockView> {
    const bid = this.#bid(id, undefined);
    return this.#mutex.run(id, () =>
      this.#tryAFewTimes(async () => {
        for (;;) {
          const result = await bid.make();
          if (result.kind === "taken") return this.#hold(id, result);
          if (result.kind === "held") return this.#view(result.stored);
          if (result.kind === "gone") throw sandboxDestroyed(id);
        }
      }),
    );
  }

  /**
   * Resumes a lease of this node under its old epoch, after a restart or a long outage of the store, even if it has expired.
   * Undefined if another node has acquired it.
   */
  resume(id: SandboxId, epoch: number): Promise<Lease | undefined> {
    const { node, clock } = this.#options;
    const lock = this.#lock(id);
    return this.#mutex.run(id, () =>
      this.#tryAFewTimes(async () => {
        for (let stored = await lock.read(); stored !== undefined; stored = await lock.read()) {
          const { value } = stored;
          if (this.#held.has(id) || value.owner !== node.id || value.epoch !== epoch) return undefined;
          const startedAt = currentMoment(clock);
          const written = await lock.swap(stored, {
            ...value,
            url: node.url,
            timestamp: Math.floor(startedAt.wallMs / 1000),
            expiresAt: new Date(startedAt.wallMs + this.timing.durationMs).toISOString(),
            nonce: crypto.randomUUID(),
            revision: value.revision + 1,
          });
          if (written !== undefined) return this.#hold(id, { stored: written, startedAt, previous: "expired" }).lease;
        }
        return undefined;
      }),
    );
  }

  /**
   * Registers as the waiter, nudges the owner, and acquires the lease when the owner releases it or the lease expires. Rejects
   * with `sandbox_in_use` while a client is attached, unless it takes over, and with `handoff_under_way` behind another
   * waiter. A canceled wait removes its registration.
   */
  async wait(
    id: SandboxId,
    { takeover, signal, patienceMs = this.timing.patienceMs, onRegistered }: WaitOptions,
  ): Promise<Acquisition> {
    const { node, clock, onError } = this.#options;
    const nonce = crypto.randomUUID();
    const wait = new LockWait({
      id,
      lock: this.#lock(id),
      bid: this.#bid(id, nonce),
      node,
      nonce,
      takeover,
      patienceMs,
      signal: signal === undefined ? this.#end.signal : AbortSignal.any([signal, this.#end.signal]),
      clock,
      timing: this.timing,
      exclusively: (work) => this.#mutex.run(id, work),
      nudge: (url) => this.#nudge(url, id),
      onRegistered,
      onError,
    });
    const waits = this.#waits.get(id) ?? new Set();
    this.#waits.set(id, waits.add(wait));
    try {
      return await wait.run((taken) => this.#hold(id, taken));
    } finally {
      waits.delete(wait);
      if (waits.size === 0 && this.#waits.get(id) === waits) this.#waits.delete(id);
    }
  }

  /** Handles a nudge: the owner has released the lock, or another node waits for it. */
  poke(id: SandboxId): void {
    this.#held.get(id)?.poke();
    for (const wait of this.#waits.get(id) ?? []) wait.wake();
  }

  /** Stops all renewals and waits. Locks stay unchanged: they expire, or a later process resumes them. */
  dispose(): void {
    this.#end.abort(new SandboxError("node_stopping", { message: `node ${this.#options.node.id} is stopping` }));
    for (const lease of [...this.#held.values()]) lease.abandon();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #hold(
    id: SandboxId,
    taken: { readonly stored: Versioned<Lock>; readonly startedAt: Moment; readonly previous: PreviousLease },
  ): Acquisition {
    const { store, clock, onError } = this.#options;
    const { stored, startedAt, previous } = taken;
    const { attemptMs } = this.timing;
    const lease = new HeldLease({
      id,
      lock: this.#lock(id),
      state: new JsonObject({ store, clock, key: stateKey(id), schema: fencedStateSchema, attemptMs }),
      stored,
      startedAt,
      clock,
      timing: this.timing,
      nudge: (url) => this.#nudge(url, id),
      onError,
      onEnded: () => {
        if (this.#held.get(id) === lease) this.#held.delete(id);
      },
    });
    this.#held.set(id, lease);
    return { lease, previous };
  }

  #bid(id: SandboxId, waiterNonce: string | undefined): LockBid {
    const { node, clock } = this.#options;
    const isHeldHere = () => this.#held.has(id);
    return new LockBid({ lock: this.#lock(id), node, clock, timing: this.timing, isHeldHere, waiterNonce });
  }

  #lock(id: SandboxId): JsonObject<Lock> {
    const { store, clock } = this.#options;
    return new JsonObject({ store, clock, key: lockKey(id), schema: lockSchema, attemptMs: this.timing.attemptMs });
  }

  #view({ value }: Versioned<Lock>): LockView {
    return viewLock(value, this.#options.clock.now().getTime(), this.timing.maxSkewMs);
  }

  /** Only a speed-up: a node that is not reached reads the lock with its next renewal. */
  #nudge(url: string, id: SandboxId): void {
    this.#options.nudge(url, id).catch(this.#options.onError);
  }

  async #tryAFewTimes<T>(work: () => Promise<T>): Promise<T> {
    const { clock, onError } = this.#options;
    for (let tries = 1; ; tries++) {
      try {
        return await work();
      } catch (thrown) {
        if (tries === TRIES || (thrown instanceof SandboxError && !thrown.retryable)) throw thrown;
        onError(thrown);
        await pause(clock, this.timing.retryMs, this.#end.signal);
      }
    }
  }
}
