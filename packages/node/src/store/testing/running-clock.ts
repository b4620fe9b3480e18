import { setImmediate } from "node:timers/promises";
import type { Clock } from "@sandpiper/core";

/** A clock that runs as long as `run` is told to, a little with each turn of the event loop: much faster than time, and never far ahead of files that are being read. */
export class RunningClock implements Clock {
  #nowMs = 0;
  readonly #appointments = new Map<symbol, { readonly atMs: number; readonly callback: () => void }>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  now(): Date {
    return new Date(1_700_000_000_000 + this.#nowMs);
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const appointment = Symbol();
    this.#appointments.set(appointment, { atMs: this.#nowMs + delayMs, callback });
    return () => this.#appointments.delete(appointment);
  }

  async run(isDone: () => boolean): Promise<void> {
    while (!isDone()) {
      await setImmediate();
      this.#nowMs += 1;
      for (const [appointment, { atMs, callback }] of this.#appointments) {
        if (atMs > this.#nowMs) continue;
        this.#appointments.delete(appointment);
        callback();
      }
    }
  }
}
