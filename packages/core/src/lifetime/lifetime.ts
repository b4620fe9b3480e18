import type { Activity, Clock } from "@sandpiper/protocol";

/** A sleep is no longer than this, so that a corrected or suspended clock is noticed and no timer overflows. */
const MAX_SLEEP_MS = 60_000;
/** A sandbox whose idle timeout is a millisecond must not wake the program a thousand times a second. */
const MIN_IDLE_SLEEP_MS = 50;

/** Why a sandbox's time is over. */
export type ExpiryReason = "ttl" | "idle";

export interface LifetimePolicy {
  /** When it ends whatever it does; null: never. */
  readonly expiresAt: Date | null;
  /** How long it may be idle; null: for ever. */
  readonly idleTimeoutMs: number | null;
  /** Activities that do not keep it from being idle; every other one does. */
  readonly idleExcept: readonly Activity[];
}

export interface LifetimeOptions extends LifetimePolicy {
  readonly clock: Clock;
  /** Called once, and never from within a call to the lifetime. */
  readonly onExpiry: (reason: ExpiryReason) => void;
}

/**
 * How long one sandbox lives. It is idle from the end of the last activity that counts, from its start when there was
 * none yet, and never while one is held. Being used costs no timer: the one there is wakes at the earliest time the
 * end may have come, and looks.
 */
export class Lifetime implements Disposable {
  readonly #clock: Clock;
  readonly #onExpiry: (reason: ExpiryReason) => void;
  readonly #held = new Map<Activity, number>();
  #expiresAtMs: number | null;
  #idleTimeoutMs: number | null;
  #idleExcept: ReadonlySet<Activity>;
  #lastActiveMs: number;
  #cancelTimer: (() => void) | undefined;
  #isOver = false;

  constructor({ clock, onExpiry, expiresAt, idleTimeoutMs, idleExcept }: LifetimeOptions) {
    this.#clock = clock;
    this.#onExpiry = onExpiry;
    this.#expiresAtMs = expiresAt?.getTime() ?? null;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#idleExcept = new Set(idleExcept);
    this.#lastActiveMs = clock.monotonicMs();
    this.#arm();
  }

  /** It happened now. */
  touch(activity: Activity): void {
    if (!this.#idleExcept.has(activity)) this.#lastActiveMs = this.#clock.monotonicMs();
  }

  /** It goes on until what this returns is disposed. */
  hold(activity: Activity): Disposable {
    this.#held.set(activity, (this.#held.get(activity) ?? 0) + 1);
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#held.set(activity, (this.#held.get(activity) ?? 0) - 1);
        this.touch(activity);
      },
    };
  }

  /** What is not given stays. A new idle timeout or policy counts from now: whoever sets it is using the sandbox. */
  update({ expiresAt, idleTimeoutMs, idleExcept }: Partial<LifetimePolicy>): void {
    if (expiresAt !== undefined) this.#expiresAtMs = expiresAt?.getTime() ?? null;
    if (idleTimeoutMs !== undefined) this.#idleTimeoutMs = idleTimeoutMs;
    if (idleExcept !== undefined) this.#idleExcept = new Set(idleExcept);
    if (idleTimeoutMs !== undefined || idleExcept !== undefined) this.#lastActiveMs = this.#clock.monotonicMs();
    this.#arm();
  }

  /** When it ends if nothing happens any more; null: not by itself. */
  get dueAt(): Date | null {
    const idleInMs = this.#isHeld() ? null : this.#idleInMs();
    const nowMs = this.#clock.now().getTime();
    if (idleInMs === null) return this.#expiresAtMs === null ? null : new Date(this.#expiresAtMs);
    return new Date(Math.min(this.#expiresAtMs ?? Number.POSITIVE_INFINITY, nowMs + idleInMs));
  }

  /** Nothing happens at its end any more. */
  dispose(): void {
    this.#isOver = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Early is right, late is wrong: what happens until the timer wakes only ever moves the idle end away. */
  #arm(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#isOver) return;
    const sleepMs = this.#sleepMs();
    if (sleepMs !== null) this.#cancelTimer = this.#clock.schedule(sleepMs, () => this.#wake());
  }

  #wake(): void {
    this.#cancelTimer = undefined;
    const reason = this.#reached();
    if (reason === undefined) {
      this.#arm();
    } else {
      this.dispose();
      this.#onExpiry(reason);
    }
  }

  #reached(): ExpiryReason | undefined {
    if (this.#expiresAtMs !== null && this.#expiresAtMs <= this.#clock.now().getTime()) return "ttl";
    const idleInMs = this.#idleInMs();
    return idleInMs !== null && idleInMs <= 0 && !this.#isHeld() ? "idle" : undefined;
  }

  #sleepMs(): number | null {
    if (this.#expiresAtMs === null && this.#idleTimeoutMs === null) return null;
    const ttlInMs =
      this.#expiresAtMs === null ? MAX_SLEEP_MS : Math.max(0, this.#expiresAtMs - this.#clock.now().getTime());
    // What is held now may be let go of at once, and is idle a whole timeout later at the earliest.
    const idleInMs = this.#isHeld() ? this.#idleTimeoutMs : this.#idleInMs();
    return Math.min(MAX_SLEEP_MS, ttlInMs, Math.max(MIN_IDLE_SLEEP_MS, idleInMs ?? MAX_SLEEP_MS));
  }

  #idleInMs(): number | null {
    if (this.#idleTimeoutMs === null) return null;
    return this.#lastActiveMs + this.#idleTimeoutMs - this.#clock.monotonicMs();
  }

  #isHeld(): boolean {
    for (const [activity, count] of this.#held) {
      if (count > 0 && !this.#idleExcept.has(activity)) return true;
    }
    return false;
  }
}
