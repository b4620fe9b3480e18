import { abortError, type SandboxError } from "@sandpiper/protocol";

interface Waiter {
  readonly admit: () => void;
  readonly refuse: (error: SandboxError) => void;
}

/** How many instances boot at once. A caller who waits goes before a refill that nobody waits for. */
export class BootSlots {
  readonly #max: number;
  readonly #onFree: () => void;
  /** In the order they came; a Set, so that one who gives up leaves at once. */
  readonly #waiters = new Set<Waiter>();
  #taken = 0;
  #closedBy: SandboxError | undefined;

  constructor(max: number, onFree: () => void) {
    this.#max = max;
    this.#onFree = onFree;
  }

  /** Callers wait only when all slots are taken, and a slot that is given back goes to them first. */
  tryTake(): boolean {
    if (this.#taken >= this.#max) return false;
    this.#taken++;
    return true;
  }

  give(): void {
    const [first] = this.#waiters;
    if (first !== undefined) {
      first.admit();
    } else {
      this.#taken--;
      this.#onFree();
    }
  }

  async run<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    await this.#take(signal);
    try {
      return await work();
    } finally {
      this.give();
    }
  }

  /** Whoever waits is refused, and so is whoever comes later. */
  close(error: SandboxError): void {
    this.#closedBy = error;
    for (const waiter of this.#waiters) waiter.refuse(error);
  }

  async #take(signal: AbortSignal | undefined): Promise<void> {
    if (this.#closedBy !== undefined) throw this.#closedBy;
    if (signal?.aborted) throw abortError(signal, "waiting for a turn to boot");
    if (this.tryTake()) return;
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => waiter.refuse(abortError(signal as AbortSignal, "waiting for a turn to boot"));
      const leave = () => {
        this.#waiters.delete(waiter);
        signal?.removeEventListener("abort", onAbort);
      };
      const waiter: Waiter = {
        admit: () => {
          leave();
          resolve();
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      signal?.addEventListener("abort", onAbort);
      this.#waiters.add(waiter);
    });
  }
}
