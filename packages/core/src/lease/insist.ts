import { type Clock, pause, SandboxError } from "@sandpiper/protocol";
import { isLeaseLost } from "./lease-errors.ts";

export interface InsistOptions {
  readonly clock: Clock;
  readonly retryMs: number;
  /** Ends the pauses early. */
  readonly signal: AbortSignal;
  /** Whether to try again. */
  readonly isInTime: () => boolean;
  readonly onError: (error: unknown) => void;
  /** The error when it must not try again. */
  readonly tooLate: (cause: unknown) => Error;
}

/** Retries an operation that the store fails, until its lease ends. */
export async function insist<T>(options: InsistOptions, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      // Damaged data stays damaged.
      if (isLeaseLost(thrown) || SandboxError.from(thrown).code === "data_loss") throw thrown;
      options.onError(thrown);
      await pause(options.clock, options.retryMs, options.signal);
      if (!options.isInTime()) throw options.tooLate(thrown);
    }
  }
}
