import { abortError, type SandboxError } from "@sandpiper/protocol";

interface Waiter {
  readonly admit: () => void;
  readonly refuse: (error: SandboxError) => void;
}

/** Limits how many instances boot at the same time. Waiting callers precede refills. */
export class BootSlots {
  readonly #max: number;
  readonly #onFree: () => void;
  /** In order of arrival; a Set, so that a canceled wait is removed immediately. */
  readonly #waiters = new Set<Waiter>();
  #taken = 0;
  #closedBy: SandboxError | undefined;

  constructor(max: number, onFree: () => void) {
    this.#max = max;
    this.#onFree = onFree;
  }

  /** Callers wait only when all slots are taken, and get a freed slot first. */
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

  /** Rejects all waiting and later callers. */
  close(error: SandboxError): void {
    this.#closedBy = error;
    for (const waiter of this.#waiters) waiter.refuse(error);
  }

  async #take(signal: AbortSignal | undefined): Promise<void> {
    if (this.#closedBy !== undefined) throw this.#closedBy;
    if (signal?.aborted) throw abortError(signal, "waiting for a boot slot");
    if (this.tryTake()) return;
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => waiter.refuse(abortError(signal as AbortSignal, "waiting for a boot slot"));
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
