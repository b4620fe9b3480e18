import type { Clock } from "../time/clock.ts";

interface Appointment {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that stands still until a test advances it. */
export class FakeClock implements Clock {
  #nowMs = 0;
  readonly #appointments = new Set<Appointment>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  now(): Date {
    return new Date(1_700_000_000_000 + this.#nowMs);
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const appointment = { atMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#appointments.add(appointment);
    return () => this.#appointments.delete(appointment);
  }

  /** Callbacks that are neither called nor canceled. */
  get pending(): number {
    return this.#appointments.size;
  }

  /** Advances and runs every due callback in order; the effects of each settle before the next. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    do await settle();
    while (this.#runNext(untilMs));
    this.#nowMs = untilMs;
  }

  /** Like `advance`, for callbacks without effects that must settle. */
  run(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    while (this.#runNext(untilMs));
    this.#nowMs = untilMs;
  }

  #runNext(untilMs: number): boolean {
    const next = this.#next(untilMs);
    if (next === undefined) return false;
    this.#nowMs = next.atMs;
    this.#appointments.delete(next);
    next.callback();
    return true;
  }

  #next(untilMs: number): Appointment | undefined {
    let first: Appointment | undefined;
    for (const appointment of this.#appointments) {
      if (appointment.atMs <= untilMs && (first === undefined || appointment.atMs < first.atMs)) first = appointment;
    }
    return first;
  }
}

/** Lets pending microtasks and callbacks run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
