import { setImmediate } from "node:timers/promises";
import type { Clock } from "@sandpiper/core";

/**
 * A clock that advances by a millisecond with each turn of the event loop while `run` runs, much faster than real time. It
 * stands still while files are read or written, so a slow disk makes nothing late.
 */
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
      if (process.getActiveResourcesInfo().some((name) => /^(FSReq|FileHandle)/.test(name))) continue;
      this.#nowMs += 1;
      for (const [appointment, { atMs, callback }] of this.#appointments) {
        if (atMs > this.#nowMs) continue;
        this.#appointments.delete(appointment);
        callback();
      }
    }
  }
}
