import type { Clock } from "@sandpiper/protocol";
import type { JsonObject, Versioned } from "./json-object.ts";
import type { LeaseTiming } from "./lease-timing.ts";
import { isLive, type Lock, liveWaiter } from "./lock.ts";
import { currentMoment, isPast, later, type Moment } from "./moment.ts";

/** What the sandbox was before this node got its lease: new, given back, or left behind by an owner that is gone. */
export type PreviousLease = "none" | "released" | "expired";

export interface LockBidOptions {
  readonly lock: JsonObject<Lock>;
  readonly node: { readonly id: string; readonly url: string };
  readonly clock: Clock;
  readonly timing: LeaseTiming;
  /** Whether this very program holds the lock already, or is giving it back. */
  readonly isHeldHere: () => boolean;
  /** Whose registration is the bidder's own. */
  readonly waiterNonce: string | undefined;
}

interface Attempt {
  readonly startedAt: Moment;
  readonly previous: PreviousLease;
}

export type BidResult =
  | {
      readonly kind: "taken";
      readonly stored: Versioned<Lock>;
      readonly startedAt: Moment;
      readonly previous: PreviousLease;
    }
  | { readonly kind: "held"; readonly stored: Versioned<Lock> }
  /** Somebody else was first; things may be different now. */
  | { readonly kind: "again" }
  /** There was a lock, and there is none any more: the sandbox was destroyed. */
  | { readonly kind: "gone" };

/** The efforts of one caller to get one lock, as often as it takes. */
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

  /** The lock is in this bidder's hands, whether the bidder was told or not. */
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
      owner: node.id,
      url: node.url,
      timestamp: Math.floor(startedAt.wallMs / 1000),
      epoch: (stored?.value.epoch ?? 0) + 1,
      expiresAt: new Date(startedAt.wallMs + timing.durationMs).toISOString(),
      attached: false,
      nonce,
      revision: (stored?.value.revision ?? 0) + 1,
      waiter: null,
    });
    if (written === undefined || this.#isStale(attempt)) return { kind: "again" };
    return { kind: "taken", stored: written, ...attempt };
  }

  /** As what it may be taken; undefined: it is held, or promised to another waiter. */
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
