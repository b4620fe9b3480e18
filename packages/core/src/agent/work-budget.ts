import type { Clock } from "@sandpiper/protocol";

/**
 * A unit is the work of one short message, some microseconds: a flood of blank lines then took a quarter of a core.
 * Output of 1 GB/s in frames of 64 KiB needs three quarters of this.
 */
const UNITS_PER_SECOND = 50_000;
/** Work that a channel may save up for a burst. */
const BURST_UNITS = UNITS_PER_SECOND / 2;
/** The work of one turn of the event loop, about 1 ms: the time for which other sandboxes wait. */
const TURN_UNITS = 256;

/** What the messages of one guest may cost this program. */
export class WorkBudget {
  readonly #clock: Clock;
  #leftUnits = BURST_UNITS;
  #outsideUnits = 0;
  #refilledAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#refilledAtMs = clock.monotonicMs();
  }

  /** May exceed what is left: the next turns then wait longer. */
  spend(units: number): void {
    this.#leftUnits -= units;
  }

  /** Runs steps of work until nothing is left to do or the turn is over. Each step returns whether there is more. */
  runTurn(step: () => boolean): "done" | "more" {
    this.#refill();
    const floor = Math.max(this.#leftUnits - TURN_UNITS, 0);
    while (this.#leftUnits > floor) if (!step()) return "done";
    return "more";
  }

  /** Spends work that happens outside of turns; true when others should run before the next of it. */
  spendOutside(units: number): boolean {
    this.spend(units);
    this.#outsideUnits += units;
    if (this.#outsideUnits < TURN_UNITS) return false;
    this.#outsideUnits = 0;
    this.#refill();
    return true;
  }

  /** How long the next turn must wait. */
  get waitMs(): number {
    const missing = TURN_UNITS - this.#leftUnits;
    return missing > 0 ? Math.ceil((missing * 1000) / UNITS_PER_SECOND) : 0;
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    const earned = ((nowMs - this.#refilledAtMs) * UNITS_PER_SECOND) / 1000;
    this.#leftUnits = Math.min(this.#leftUnits + earned, BURST_UNITS);
    this.#refilledAtMs = nowMs;
  }
}
