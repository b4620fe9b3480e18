interface Happening {
  readonly atMs: number;
  readonly callback: () => void;
}

/** True time, which no node sees, and chance. The same seed gives the same story. */
export class World {
  nowMs = 0;
  readonly #agenda: Happening[] = [];
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

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  between(least: number, most: number): number {
    return least + this.random() * (most - least);
  }

  after(delayMs: number, callback: () => void): void {
    const atMs = this.nowMs + Math.max(0, delayMs);
    let index = this.#agenda.length;
    while (index > 0 && (this.#agenda[index - 1] as Happening).atMs < atMs) index--;
    // The latest comes first, so that the next one is taken from the end; among equals chance decides.
    if (this.chance(0.5)) while (index > 0 && (this.#agenda[index - 1] as Happening).atMs === atMs) index--;
    this.#agenda.splice(index, 0, { atMs, callback });
  }

  /** Lets everything happen until then; what each happening sets in motion comes to rest before the next. */
  async run(untilMs: number, onHappened: () => void): Promise<void> {
    for (let next = this.#agenda.at(-1); next !== undefined && next.atMs <= untilMs; next = this.#agenda.at(-1)) {
      this.#agenda.pop();
      this.nowMs = next.atMs;
      next.callback();
      await new Promise((resolve) => setImmediate(resolve));
      onHappened();
    }
    this.nowMs = untilMs;
  }
}
