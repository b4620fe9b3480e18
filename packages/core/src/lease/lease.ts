import type { SandboxId } from "@sandpiper/protocol";
import type { LockWaiter } from "./lock.ts";

/** The right to run one sandbox, held by this node and renewed until it is released or lost. */
export interface Lease {
  readonly id: SandboxId;
  readonly epoch: number;
  /**
   * The `clock.monotonicMs()` at which the lease counts as lost. It starts before the last successful renewal was sent, so
   * that it passes before another node may acquire the sandbox.
   */
  readonly deadlineMs: number;
  /** Aborted with `lease_lost` when another node has it or its deadline has passed, but not by a release. */
  readonly lost: AbortSignal;
  /** Checks the clock, so it is right even just after the process or machine has slept. */
  readonly isHeld: boolean;
  /** The state must have at least this revision. */
  readonly stateRevision: number;
  /** Records the revision of a stored state in the lock, with its next write. */
  noteState(revision: number): void;
  renewNow(): Promise<void>;
  /** Sets whether a client is attached; a waiter that does not take over is then refused. */
  setAttached(isAttached: boolean): Promise<void>;
  /** Calls back once for each waiter, after a nudge or with the next renewal. */
  onWaiter(callback: (waiter: LockWaiter) => void): void;
  /** Calls back with each new deadline, and soon with the current one. */
  onRenewed(callback: (deadlineMs: number) => void): void;
  /** Releases the lease, which ends with the call; if the store does not answer, it expires. */
  release(): Promise<void>;
  /** Ends the lease here and leaves the lock unchanged: it expires, or this node acquires it again. */
  abandon(): void;
  /** Deletes the state and the lock of a destroyed sandbox. The lease ends with the call. */
  remove(): Promise<void>;
}
