import type { Clock } from "@sandpiper/protocol";

export interface BackOffOptions {
  /** The pause after the first failure; every further one in a row doubles it. */
  readonly firstMs: number;
  /** The longest pause. */
  readonly mostMs: number;
}

/**
 * When the next attempt may be made. Attempts that ran side by side and failed together are one failure in a row,
 * which is why each brings the streak it started at.
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

  /** Undefined: now. */
  get retryInMs(): number | undefined {
    if (this.#retryAtMs === undefined) return undefined;
    const inMs = this.#retryAtMs - this.#clock.monotonicMs();
    return inMs > 0 ? inMs : undefined;
  }

  succeeded(): void {
    this.#streak = 0;
    this.#retryAtMs = undefined;
  }

  /** What was booted ended so soon that its boot is no success either. */
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
