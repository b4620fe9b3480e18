import { type Clock, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";

/** A connection to the lease guard, a separate process that kills instances at their deadline. */
interface Guard {
  /** Starts the process unless it runs. */
  start(): Promise<void>;
  set(id: SandboxId, deadlineMs: number): void;
  remove(id: SandboxId): void;
  /** The sandboxes whose instances it has killed. */
  ended(): Promise<readonly SandboxId[]>;
  /** Tells the process that this node needs it no longer. */
  close(): void;
}

export interface LeaseGuardOptions {
  readonly guard: Guard;
  readonly clock: Clock;
  /** How often to check that the guard process runs. */
  readonly lookMs: number;
  readonly onError: (error: SandboxError) => void;
}

/** Has instances killed when their lease expires, even if this process is stopped or dead by then. */
export class LeaseGuard implements Disposable {
  readonly #options: LeaseGuardOptions;
  readonly #deadlines = new Map<SandboxId, number>();
  #stop = () => {};

  constructor(options: LeaseGuardOptions) {
    this.#options = options;
  }

  /** Clears the kills of a time without a node, so that those sandboxes can run again. */
  async start(): Promise<void> {
    await this.#options.guard.start();
    for (const id of await this.#options.guard.ended()) this.#options.guard.remove(id);
    this.#scheduleCheck();
  }

  /** Undefined if nothing of the sandbox runs here any more. */
  setDeadline(id: SandboxId, deadlineMs: number | undefined): void {
    if (deadlineMs === undefined) this.#deadlines.delete(id);
    else this.#deadlines.set(id, deadlineMs);
    try {
      if (deadlineMs === undefined) this.#options.guard.remove(id);
      else this.#options.guard.set(id, deadlineMs);
    } catch (thrown) {
      this.#options.onError(SandboxError.from(thrown));
    }
  }

  [Symbol.dispose](): void {
    this.#stop();
    this.#options.guard.close();
  }

  #scheduleCheck(): void {
    const { clock, lookMs, onError } = this.#options;
    this.#stop = clock.schedule(lookMs, () => {
      this.#check().catch((thrown) => onError(SandboxError.from(thrown)));
      this.#scheduleCheck();
    });
  }

  async #check(): Promise<void> {
    const { guard, clock } = this.#options;
    await guard.start();
    for (const id of await guard.ended()) {
      const deadlineMs = this.#deadlines.get(id);
      if (deadlineMs === undefined || deadlineMs <= clock.monotonicMs()) continue;
      // The guard killed it just before this node resumed the lease. Until the kill is cleared, no new instance can run.
      guard.remove(id);
      guard.set(id, deadlineMs);
    }
  }
}
