import type { Clock } from "@sandpiper/protocol";
import type { JsonObject, Versioned } from "./json-object.ts";
import type { LeaseTiming } from "./lease-timing.ts";
import { isLive, type Lock, liveWaiter } from "./lock.ts";
import { currentMoment, isPast, later, type Moment } from "./moment.ts";

/** The state of the lease before this node acquired it: new, released, or expired. */
export type PreviousLease = "none" | "released" | "expired";

export interface LockBidOptions {
  readonly lock: JsonObject<Lock>;
  readonly node: { readonly id: string; readonly url: string | null };
  readonly clock: Clock;
  readonly timing: LeaseTiming;
  /** Whether this program already holds the lock, or is releasing it. */
  readonly isHeldHere: () => boolean;
  /** Identifies the bidder's own registration. */
  readonly waiterNonce: string | undefined;
}

interface Attempt {
  readonly startedAt: Moment;
  readonly previous: PreviousLease;
}

export type BidResult =
  | ({ readonly kind: "taken"; readonly stored: Versioned<Lock> } & Attempt)
  | { readonly kind: "held"; readonly stored: Versioned<Lock> }
  /** Another node was first; the caller reads again. */
  | { readonly kind: "again" }
  /** The lock has disappeared: the sandbox was destroyed. */
  | { readonly kind: "gone" };

/** The attempts of one caller to acquire one lock. */
export class LockBid {
  readonly #options: LockBidOptions;
  readonly #attempts = new Map<string, Attempt>();
  #hasSeenLock = false;

  constructor(options: LockBidOptions) {
    this.#options = options;
  }

  async make(): Promise<BidResult> {
    const { lock } = this.#options;
    const stored = await lock.read();
    const earlier = stored && this.#attemptOf(stored.value);
    if (stored !== undefined && earlier !== undefined && !this.#isStale(earlier)) {
      return { kind: "taken", stored, ...earlier };
    }
    if (stored === undefined && this.#hasSeenLock) return { kind: "gone" };
    this.#hasSeenLock ||= stored !== undefined;
    const previous = this.#opening(stored?.value);
    if (previous === undefined) return stored === undefined ? { kind: "again" } : { kind: "held", stored };
    return this.#take(stored, previous);
  }

  /** Whether this bidder holds the lock, even if it did not receive the answer. */
  owns(lock: Lock): boolean {
    return this.#attemptOf(lock) !== undefined;
  }

  async #take(stored: Versioned<Lock> | undefined, previous: PreviousLease): Promise<BidResult> {
    const { lock, node, clock, timing } = this.#options;
    const startedAt = currentMoment(clock);
    const attempt = { startedAt, previous };
    const nonce = crypto.randomUUID();
    this.#attempts.set(nonce, attempt);
    const written = await lock.swap(stored, {
      ...stored?.value,
      owner: node.id,
      url: node.url,
      timestamp: Math.floor(startedAt.wallMs / 1000),
      epoch: (stored?.value.epoch ?? 0) + 1,
      expiresAt: new Date(startedAt.wallMs + timing.durationMs).toISOString(),
      attached: false,
      nonce,
      revision: (stored?.value.revision ?? 0) + 1,
      stateRevision: stored?.value.stateRevision ?? 0,
      waiter: null,
    });
    if (written === undefined || this.#isStale(attempt)) return { kind: "again" };
    return { kind: "taken", stored: written, ...attempt };
  }

  /** How it can be acquired; undefined while it is held or reserved for another waiter. */
  #opening(lock: Lock | undefined): PreviousLease | undefined {
    const { node, clock, timing, isHeldHere, waiterNonce } = this.#options;
    if (isHeldHere()) return undefined;
    if (lock === undefined) return "none";
    const nowMs = clock.now().getTime();
    const waiter = liveWaiter(lock, nowMs, timing.maxSkewMs);
    if (waiter !== null && waiter.nonce !== waiterNonce) return undefined;
    if (lock.owner === null) return "released";
    const unnoticed = this.#attemptOf(lock);
    if (unnoticed !== undefined) return unnoticed.previous;
    return lock.owner === node.id || !isLive(lock, nowMs, timing.maxSkewMs) ? "expired" : undefined;
  }

  #attemptOf(lock: Lock): Attempt | undefined {
    return lock.owner === null ? undefined : this.#attempts.get(lock.nonce);
  }

  #isStale({ startedAt }: Attempt): boolean {
    const { clock, timing } = this.#options;
    return isPast(later(startedAt, timing.durationMs - timing.marginMs), clock);
  }
}
