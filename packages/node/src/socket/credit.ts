/** How much a client lets a stream send. */
export class Credit {
  readonly #signal: AbortSignal;
  #amount: number;
  #wake: (() => void) | undefined;

  /** The signal ends every wait for more. */
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

  /** Resolves when there is some, or nobody waits for anything any more. A stream has one sender: one waits at a time. */
  async some(): Promise<void> {
    while (this.#amount <= 0 && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
