import { type Clock, SandboxError } from "@sandpiper/core";

/** All callers together may use this many times the budget of one. */
const NODE_SHARE = 4;
/** A stream with fewer bytes in a period of waiting is stalled. */
const MIN_PROGRESS_BYTES = 64 * 1024;
const RETRY_AFTER_MS = 1000;

export interface BodyLimitsOptions {
  /** Of the bodies in memory of one caller; 0 for no limit. */
  readonly budgetBytes: number;
  /** For a whole body in memory, or for the next part of a stream. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Called for each refusal. */
  readonly onRefusal?: ((limit: string) => void) | undefined;
}

/** Memory for one body; disposed of when its request is done. */
export interface BodyMemory extends Disposable {
  /** Throws `resource_exhausted`. */
  add(bytes: number): void;
}

/** Limits what request bodies hold: memory, and connections of callers that send slowly. */
export class BodyLimits {
  readonly #options: BodyLimitsOptions;
  readonly #used = new Map<string, number>();
  #total = 0;

  constructor(options: BodyLimitsOptions) {
    this.#options = options;
  }

  memory(caller: string): BodyMemory {
    let held = 0;
    return {
      add: (bytes) => {
        this.#reserve(caller, bytes);
        held += bytes;
      },
      [Symbol.dispose]: () => {
        this.#change(caller, -held);
        held = 0;
      },
    };
  }

  /** Throws `deadline_exceeded` if the body takes too long. */
  async inTime<T>(reading: Promise<T>): Promise<T> {
    return await this.#within(this.#options.timeoutMs, reading);
  }

  /** Passes a stream on while it makes progress. The time that its consumer takes does not count. */
  async *whileProgressing(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const { clock, timeoutMs } = this.#options;
    const pieces = source[Symbol.asyncIterator]();
    let waitedMs = 0;
    let received = 0;
    let isWaiting = false;
    try {
      for (;;) {
        const sinceMs = clock.monotonicMs();
        isWaiting = true;
        const { done, value } = await this.#within(timeoutMs - waitedMs, pieces.next());
        isWaiting = false;
        if (done) return;
        waitedMs += clock.monotonicMs() - sinceMs;
        received += value.length;
        if (received >= MIN_PROGRESS_BYTES) [waitedMs, received] = [0, 0];
        yield value;
      }
    } finally {
      // A source that waits for the caller ends with the connection.
      if (!isWaiting) await pieces.return?.();
    }
  }

  #reserve(caller: string, bytes: number): void {
    const { budgetBytes, onRefusal } = this.#options;
    const used = (this.#used.get(caller) ?? 0) + bytes;
    const isTooMuch = used > budgetBytes || this.#total + bytes > budgetBytes * NODE_SHARE;
    // A single body is limited by bodyLimitBytes, and must never be refused for good.
    if (budgetBytes > 0 && isTooMuch && used > bytes) {
      onRefusal?.("body_budget");
      throw overBudget(budgetBytes);
    }
    this.#change(caller, bytes);
  }

  #change(caller: string, bytes: number): void {
    this.#total += bytes;
    const used = (this.#used.get(caller) ?? 0) + bytes;
    if (used === 0) this.#used.delete(caller);
    else this.#used.set(caller, used);
  }

  async #within<T>(limitMs: number, reading: Promise<T>): Promise<T> {
    const { clock, onRefusal } = this.#options;
    const late = Promise.withResolvers<never>();
    const stop = clock.schedule(Math.max(0, limitMs), () => {
      onRefusal?.("body_deadline");
      late.reject(new SandboxError("slow_body", { message: "the request's body arrived too slowly" }));
    });
    // The loser of the race ends with the connection.
    reading.catch(() => {});
    try {
      return await Promise.race([reading, late.promise]);
    } finally {
      stop();
    }
  }
}

function overBudget(limitBytes: number): SandboxError {
  return new SandboxError("body_budget", {
    message: `the bodies of this caller's requests have more than ${limitBytes} bytes in memory`,
    details: { limitBytes, retryAfterMs: RETRY_AFTER_MS },
  });
}
