import type { Clock } from "@sandpiper/protocol";

export interface BackOffOptions {
  /** The pause after the first failure; every further one in a row doubles it. */
  readonly firstMs: number;
  /** The longest pause. */
  readonly mostMs: number;
}

/**
 * The time of the next attempt. Concurrent attempts that fail together count as one failure, so each passes the streak at
 * its start.
 */
export class BackOff {
  readonly #clock: Clock;
  readonly #options: BackOffOptions;
  #streak = 0;
  #retryAtMs: number | undefined;

  constructor(clock: Clock, options: BackOffOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Failures in a row. */
  get streak(): number {
    return this.#streak;
  }

  /** Undefined if an attempt may start now. */
  get retryInMs(): number | undefined {
    if (this.#retryAtMs === undefined) return undefined;
    const inMs = this.#retryAtMs - this.#clock.monotonicMs();
    return inMs > 0 ? inMs : undefined;
  }

  succeeded(): void {
    this.#streak = 0;
    this.#retryAtMs = undefined;
  }

  /** An instance that ended this soon counts as a failed boot. */
  isTooSoon(livedMs: number): boolean {
    return livedMs < this.#options.mostMs;
  }

  failed(streakAtStart: number): void {
    if (streakAtStart < this.#streak) return;
    this.#streak = streakAtStart + 1;
    const { firstMs, mostMs } = this.#options;
    this.#retryAtMs = this.#clock.monotonicMs() + Math.min(mostMs, firstMs * 2 ** streakAtStart);
  }
}
