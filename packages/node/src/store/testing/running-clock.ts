import { setImmediate } from "node:timers/promises";
import type { Clock } from "@sandpiper/core";

/**
 * A clock that advances by a millisecond with each turn of the event loop while `run` runs. It stops while files are read or
 * written, so a slow disk causes no timeouts.
 */
export class RunningClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Map<symbol, { readonly atMs: number; readonly callback: () => void }>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  now(): Date {
    return new Date(1_700_000_000_000 + this.#nowMs);
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const timer = Symbol();
    this.#timers.set(timer, { atMs: this.#nowMs + delayMs, callback });
    return () => this.#timers.delete(timer);
  }

  async run(isDone: () => boolean): Promise<void> {
    while (!isDone()) {
      await setImmediate();
      if (process.getActiveResourcesInfo().some((name) => /^(FSReq|FileHandle)/.test(name))) continue;
      this.#nowMs += 1;
      for (const [timer, { atMs, callback }] of this.#timers) {
        if (atMs > this.#nowMs) continue;
        this.#timers.delete(timer);
        callback();
      }
    }
  }
}
