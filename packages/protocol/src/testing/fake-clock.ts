import type { Clock } from "../time/clock.ts";

interface Appointment {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is moved. */
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

  /** Appointments that nobody has taken back. */
  get pending(): number {
    return this.#appointments.size;
  }

  /** Moves on and keeps every appointment on the way, in order; whatever these set in motion gets its turn. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    await settle();
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#nowMs = next.atMs;
      this.#appointments.delete(next);
      next.callback();
      await settle();
    }
    this.#nowMs = untilMs;
  }

  #next(untilMs: number): Appointment | undefined {
    let first: Appointment | undefined;
    for (const appointment of this.#appointments) {
      if (appointment.atMs <= untilMs && (first === undefined || appointment.atMs < first.atMs)) first = appointment;
    }
    return first;
  }
}

/** Lets everything that is already under way in memory come to rest. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
