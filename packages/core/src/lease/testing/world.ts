interface Event {
  readonly atMs: number;
  readonly callback: () => void;
}

/** True time, which no node sees, and randomness. The same seed gives the same run. */
export class World {
  nowMs = 0;
  readonly #agenda: Event[] = [];
  #random: number;

  constructor(seed: number) {
    this.#random = seed;
  }

  /** From 0 to below 1. */
  random(): number {
    this.#random = (this.#random + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#random ^ (this.#random >>> 15), 1 | this.#random);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  readonly chance = (probability: number): boolean => this.random() < probability;

  readonly between = (least: number, most: number): number => least + this.random() * (most - least);

  after(delayMs: number, callback: () => void): void {
    const atMs = this.nowMs + Math.max(0, delayMs);
    let index = this.#agenda.length;
    while (index > 0 && (this.#agenda[index - 1] as Event).atMs < atMs) index--;
    // Sorted latest first, so that the next event is the last element; simultaneous events are in random order.
    if (this.chance(0.5)) while (index > 0 && (this.#agenda[index - 1] as Event).atMs === atMs) index--;
    this.#agenda.splice(index, 0, { atMs, callback });
  }

  /** Runs all events until then; the consequences of one settle before the next. */
  async run(untilMs: number, onEvent: () => void): Promise<void> {
    for (let next = this.#agenda.at(-1); next !== undefined && next.atMs <= untilMs; next = this.#agenda.at(-1)) {
      this.#agenda.pop();
      this.nowMs = next.atMs;
      next.callback();
      await new Promise((resolve) => setImmediate(resolve));
      onEvent();
    }
    this.nowMs = untilMs;
  }
}
