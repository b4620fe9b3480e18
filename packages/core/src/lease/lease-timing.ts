export interface LeaseTimingOptions {
  /** How long a lease lasts when it is not renewed. */
  readonly durationMs: number;
  /** The maximum difference between the clocks of two nodes. */
  readonly maxSkewMs: number;
  /** How long an owner may take to save a sandbox for a handoff. */
  readonly checkpointBudgetMs: number;
}

/** All times that follow from the duration of a lease. */
export interface LeaseTiming {
  readonly durationMs: number;
  readonly maxSkewMs: number;
  /** An owner stops this long before its lease expires: time to end its instances, and a margin for a slow clock. */
  readonly marginMs: number;
  readonly renewEveryMs: number;
  /** The pause after a call to the store that failed. */
  readonly retryMs: number;
  /** A call to the store that takes longer counts as failed, with an unknown effect. */
  readonly attemptMs: number;
  /** How long a waiter's registration lasts when it is not renewed. */
  readonly waiterMs: number;
  readonly renewWaiterEveryMs: number;
  /** An owner may crash at the end of its time; its lease then still has to expire, by a clock that may be ahead. */
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
