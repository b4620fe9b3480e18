import type { Timing } from "../timing.ts";

interface Appointment {
  readonly atMs: number;
  readonly callback: () => void;
}

/** Time that stands still until it is moved, and chance without surprises. */
export class ManualTiming implements Timing {
  readonly #appointments = new Set<Appointment>();
  #nowMs = 0;

  monotonicMs(): number {
    return this.#nowMs;
  }

  random(): number {
    return 0.5;
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const appointment = { atMs: this.#nowMs + delayMs, callback };
    this.#appointments.add(appointment);
    return () => this.#appointments.delete(appointment);
  }

  get pending(): number {
    return this.#appointments.size;
  }

  /** Moves on and keeps every appointment on the way, in order. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    await settle();
    for (;;) {
      const due = [...this.#appointments].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#appointments.delete(due);
      this.#nowMs = due.atMs;
      due.callback();
      await settle();
    }
    this.#nowMs = untilMs;
  }
}

/** Lets everything that is already under way in memory come to rest. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
