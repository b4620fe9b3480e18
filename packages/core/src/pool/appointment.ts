import type { Clock } from "@sandpiper/protocol";

/** One callback, called once at the earliest requested time. */
export class Appointment {
  readonly #clock: Clock;
  readonly #callback: () => void;
  #atMs = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock, callback: () => void) {
    this.#clock = clock;
    this.#callback = callback;
  }

  atLatestIn(delayMs: number): void {
    const atMs = this.#clock.monotonicMs() + delayMs;
    if (this.#atMs <= atMs) return;
    this.#cancelTimer?.();
    this.#atMs = atMs;
    this.#cancelTimer = this.#clock.schedule(delayMs, () => {
      this.#atMs = Number.POSITIVE_INFINITY;
      this.#callback();
    });
  }

  cancel(): void {
    this.#cancelTimer?.();
    this.#atMs = Number.POSITIVE_INFINITY;
  }
}
