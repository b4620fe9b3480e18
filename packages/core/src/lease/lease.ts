import type { SandboxId } from "@sandpiper/protocol";
import type { LockWaiter } from "./lock.ts";

/** The right to run one sandbox, held by this node and renewed until it is given back or lost. */
export interface Lease {
  readonly id: SandboxId;
  readonly epoch: number;
  /**
   * The instant of `clock.monotonicMs()` from which on the lease counts as lost. It is counted from before the last
   * successful renewal was sent, so that it comes before anybody else may take the sandbox.
   */
  readonly deadlineMs: number;
  /** Aborted with `lease_lost` when another node has it, or when its deadline passed. Never by giving it back. */
  readonly lost: AbortSignal;
  /** By the clock, now: right also in the first moment after the process or the machine has slept. */
  readonly isHeld: boolean;
  renewNow(): Promise<void>;
  /** Whether a client is attached: who waits without taking over is refused then. */
  setAttached(isAttached: boolean): Promise<void>;
  /** Called once for each waiter, when it is first seen: after a nudge, or with the next renewal. */
  onWaiter(callback: (waiter: LockWaiter) => void): void;
  /** Called with each new deadline, and soon with the present one. */
  onRenewed(callback: (deadlineMs: number) => void): void;
  /** Gives it back. Not held from the call on; when the store cannot be told, it ends by its time. */
  release(): Promise<void>;
  /** The sandbox is destroyed: its state and its lock are deleted. Not held from the call on. */
  remove(): Promise<void>;
}
