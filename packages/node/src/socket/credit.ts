/** How much a stream may send before its client grants more. */
export class Credit {
  readonly #signal: AbortSignal;
  #amount: number;
  #wake: (() => void) | undefined;

  /** The signal ends `some`. */
  constructor(amount: number, signal: AbortSignal) {
    this.#amount = amount;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wake?.(), { once: true });
  }

  get amount(): number {
    return this.#amount;
  }

  add(amount: number): void {
    this.#amount += amount;
    this.#wake?.();
  }

  take(amount: number): void {
    this.#amount -= amount;
  }

  /** Resolves when there is credit, or the signal aborts. Only one caller can wait: a stream has one sender. */
  async some(): Promise<void> {
    while (this.#amount <= 0 && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
