import { type Clock, pause } from "@sandpiper/protocol";
import { isLeaseLost } from "./lease-errors.ts";

export interface InsistOptions {
  readonly clock: Clock;
  readonly retryMs: number;
  /** Ends the pauses early. */
  readonly signal: AbortSignal;
  /** Whether there is still a point in trying. */
  readonly isInTime: () => boolean;
  readonly onError: (error: unknown) => void;
  /** What to reject with when there is none. */
  readonly tooLate: (cause: unknown) => Error;
}

/** Repeats what fails because of the store until the lease that it is done under ends. */
export async function insist<T>(options: InsistOptions, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      if (isLeaseLost(thrown)) throw thrown;
      options.onError(thrown);
      await pause(options.clock, options.retryMs, options.signal);
      if (!options.isInTime()) throw options.tooLate(thrown);
    }
  }
}
