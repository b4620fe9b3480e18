export interface LeaseTimingOptions {
  /** How long a lease lasts when it is not renewed. */
  readonly durationMs: number;
  /** The most by which the clocks of two nodes differ. */
  readonly maxSkewMs: number;
  /** How long an owner that was asked for a sandbox may take to save it. */
  readonly checkpointBudgetMs: number;
}

/** Everything that follows from how long a lease lasts, in one place, so that the parts fit together. */
export interface LeaseTiming {
  readonly durationMs: number;
  readonly maxSkewMs: number;
  /** An owner stops this long before its lease ends: time to stop what runs, and room for a clock that goes too slowly. */
  readonly marginMs: number;
  readonly renewEveryMs: number;
  /** The pause after a call to the store that failed. */
  readonly retryMs: number;
  /** A call to the store that takes longer counts as one that failed, with an effect that nobody knows. */
  readonly attemptMs: number;
  /** How long a waiter's registration lasts when it is not renewed. */
  readonly waiterMs: number;
  readonly renewWaiterEveryMs: number;
  /** An owner may crash at the end of its budget; its lease then lasts a while, by a clock that may be ahead. */
  readonly patienceMs: number;
}

export function leaseTiming({ durationMs, maxSkewMs, checkpointBudgetMs }: LeaseTimingOptions): LeaseTiming {
  return {
    durationMs,
    maxSkewMs,
    marginMs: durationMs / 10,
    renewEveryMs: durationMs / 3,
    retryMs: durationMs / 30,
    attemptMs: durationMs / 5,
    waiterMs: durationMs / 2,
    renewWaiterEveryMs: durationMs / 6,
    patienceMs: checkpointBudgetMs + durationMs + 2 * maxSkewMs + durationMs / 3,
  };
}
