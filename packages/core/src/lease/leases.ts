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

/** Who wants a lease is told of a store that fails after so many tries. */
const TRIES = 3;

export interface LeasesOptions extends LeaseTimingOptions {
  readonly store: ObjectStore;
  /** As other nodes know it; the same after a restart. */
  readonly node: { readonly id: string; readonly url: string };
  readonly clock: Clock;
  /** Tells the node at that URL that the lock of this sandbox has changed; it calls its own `poke`. */
  readonly nudge: (url: string, sandbox: SandboxId) => Promise<void>;
  /** Told of what fails in the background and is tried again. */
  readonly onError: (error: unknown) => void;
}

export interface Acquisition {
  readonly lease: Lease;
  readonly previous: PreviousLease;
}

export interface WaitOptions {
  /** Take it although a client is attached to it. */
  readonly takeover: boolean;
  readonly signal?: AbortSignal | undefined;
  /** By default longer than an owner may take to save a sandbox and to lose its lease after a crash. */
  readonly patienceMs?: number | undefined;
}

/** Which node runs which sandbox, decided by compare-and-swap on one object for each sandbox. */
export class Leases implements Disposable {
  readonly timing: LeaseTiming;
  readonly #options: LeasesOptions;
  readonly #held = new Map<SandboxId, HeldLease>();
  readonly #waits = new Map<SandboxId, Set<LockWait>>();
  readonly #turns = new KeyedMutex<SandboxId>();
  readonly #end = new AbortController();

  constructor(options: LeasesOptions) {
    this.timing = leaseTiming(options);
    this.#options = options;
  }

  /** The lease that this program has, if any. */
  held(id: SandboxId): Lease | undefined {
    return this.#held.get(id);
  }

  /** Undefined: nobody has ever held it, or it was destroyed. */
  async read(id: SandboxId): Promise<LockView | undefined> {
    const stored = await this.#lock(id).read();
    return stored && this.#view(stored);
  }

  /**
   * Takes it if that is possible at once: it is new, was given back, has expired, or was held by an earlier life of this node.
   * Otherwise says who has it, or whom it waits for.
   */
  acquire(id: SandboxId): Promise<Acquisition | LockView> {
    const bid = this.#bid(id, undefined);
    return this.#turns.run(id, () =>
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
   * Goes on with a lease of this node under its old epoch: after a restart, or when the store was away for too long. It works as long
   * as nobody else has taken it, whether its time is over or not. Undefined: it is not ours any more.
   */
  resume(id: SandboxId, epoch: number): Promise<Lease | undefined> {
    const { node, clock } = this.#options;
    const lock = this.#lock(id);
    return this.#turns.run(id, () =>
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
   * Registers as the one who waits, asks the owner for the sandbox, and takes it when it is given back or its owner's time is over.
   * Rejects with `sandbox_in_use` while a client is attached, unless it takes over, and with `handoff_under_way` behind another
   * waiter. Whoever gives up is not registered any more.
   */
  async wait(
    id: SandboxId,
    { takeover, signal, patienceMs = this.timing.patienceMs }: WaitOptions,
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
      inTurn: (work) => this.#turns.run(id, work),
      nudge: (url) => this.#nudge(url, id),
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

  /** Somebody says that the lock has changed: its owner has given it back, or somebody waits for it. */
  poke(id: SandboxId): void {
    this.#held.get(id)?.poke();
    for (const wait of this.#waits.get(id) ?? []) wait.wake();
  }

  /** Renews nothing and waits for nothing any more. Locks stay as they are: they end by their time, or are resumed. */
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
      onOver: () => {
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

  /** Only makes things faster: whoever is not reached finds out by itself. */
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
