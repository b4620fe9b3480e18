import type { Clock } from "@sandpiper/core";

/** Two seconds' worth: programs open their connections in bursts. */
const BURST_SECONDS = 2;

/** Counts what a sandbox may use per second. */
export class TokenBucket {
  readonly #clock: Clock;
  #perSecond: number | null;
  #tokens: number;
  #atMs: number;

  /** Null for no limit. */
  constructor(perSecond: number | null, clock: Clock) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#tokens = (perSecond ?? 0) * BURST_SECONDS;
    this.#atMs = clock.monotonicMs();
  }

  get isLimited(): boolean {
    return this.#perSecond !== null;
  }

  /** The next uses have the new limit; what was used before still counts. */
  setLimit(perSecond: number | null): void {
    this.#refill();
    if (this.#perSecond === null) this.#tokens = (perSecond ?? 0) * BURST_SECONDS;
    this.#perSecond = perSecond;
  }

  /** Takes one, if there is one. */
  tryTake(): boolean {
    if (this.#perSecond === null) return true;
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Takes any amount, on credit if need be, and returns for how long the caller must then do nothing. */
  spend(amount: number): number {
    if (this.#perSecond === null) return 0;
    this.#refill();
    this.#tokens -= amount;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#perSecond) * 1000;
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#perSecond !== null) {
      const added = ((nowMs - this.#atMs) / 1000) * this.#perSecond;
      this.#tokens = Math.min(this.#perSecond * BURST_SECONDS, this.#tokens + added);
    }
    this.#atMs = nowMs;
  }
}
