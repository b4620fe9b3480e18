import type { Activity, Clock } from "@sandpiper/protocol";

/** A sleep is no longer than this, so that a corrected or suspended clock is noticed and no timer overflows. */
const MAX_SLEEP_MS = 60_000;
/** A sandbox whose idle timeout is a millisecond must not wake the program a thousand times a second. */
const MIN_IDLE_SLEEP_MS = 50;

/** Why a sandbox expired. */
export type ExpiryReason = "ttl" | "idle";

export interface LifetimePolicy {
  /** When the sandbox ends, idle or not; null for never. */
  readonly expiresAt: Date | null;
  /** How long the sandbox may be idle; null for no limit. */
  readonly idleTimeoutMs: number | null;
  /** Activities that do not reset the idle timeout; all others do. */
  readonly idleExcept: readonly Activity[];
}

export interface LifetimeOptions extends LifetimePolicy {
  readonly clock: Clock;
  /** Called once, and never from within a call to the lifetime. */
  readonly onExpiry: (reason: ExpiryReason) => void;
}

/**
 * Expires one sandbox. The idle time starts at the end of the last activity that counts, or at the sandbox's start. It
 * does not run while an activity is held. An activity sets no timer: a single timer wakes at the earliest possible
 * expiry and checks.
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
  #isDisposed = false;

  constructor({ clock, onExpiry, expiresAt, idleTimeoutMs, idleExcept }: LifetimeOptions) {
    this.#clock = clock;
    this.#onExpiry = onExpiry;
    this.#expiresAtMs = expiresAt?.getTime() ?? null;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#idleExcept = new Set(idleExcept);
    this.#lastActiveMs = clock.monotonicMs();
    this.#arm();
  }

  /** Records an activity that happens now. */
  touch(activity: Activity): void {
    if (!this.#idleExcept.has(activity)) this.#lastActiveMs = this.#clock.monotonicMs();
  }

  /** Records an activity that lasts until the result is disposed. */
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

  /** Omitted fields stay unchanged. A new idle timeout or policy counts from now, because setting it is a use. */
  update({ expiresAt, idleTimeoutMs, idleExcept }: Partial<LifetimePolicy>): void {
    if (expiresAt !== undefined) this.#expiresAtMs = expiresAt?.getTime() ?? null;
    if (idleTimeoutMs !== undefined) this.#idleTimeoutMs = idleTimeoutMs;
    if (idleExcept !== undefined) this.#idleExcept = new Set(idleExcept);
    if (idleTimeoutMs !== undefined || idleExcept !== undefined) this.#lastActiveMs = this.#clock.monotonicMs();
    this.#arm();
  }

  /** When the sandbox expires without further activity; null for never. */
  get dueAt(): Date | null {
    const idleInMs = this.#isHeld() ? null : this.#idleInMs();
    const nowMs = this.#clock.now().getTime();
    if (idleInMs === null) return this.#expiresAtMs === null ? null : new Date(this.#expiresAtMs);
    return new Date(Math.min(this.#expiresAtMs ?? Number.POSITIVE_INFINITY, nowMs + idleInMs));
  }

  /** After this call `onExpiry` is not called. */
  dispose(): void {
    this.#isDisposed = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** The timer may wake too early but never too late, because an activity only postpones the idle expiry. */
  #arm(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#isDisposed) return;
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
    // A held activity may end immediately; the sandbox then becomes idle one whole timeout later.
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
