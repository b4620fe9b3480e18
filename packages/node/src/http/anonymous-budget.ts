import type { Clock } from "@sandpiper/core";

const PERIOD_MS = 60_000;
const PER_PERIOD = 10;

/** Limits the audit entries of anonymous callers, so that they cannot evict all others from the bounded log. */
export class AnonymousBudget {
  readonly #clock: Clock;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #taken = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  take(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#startedAtMs >= PERIOD_MS) [this.#startedAtMs, this.#taken] = [nowMs, 0];
    return this.#taken++ < PER_PERIOD;
  }
}
