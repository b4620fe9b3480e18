import { type Clock, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";

/** What ends instances whose time is over, in a process of its own. */
interface Guard {
  /** Makes sure that it is there. */
  start(): Promise<void>;
  set(id: SandboxId, deadlineMs: number): void;
  remove(id: SandboxId): void;
  /** Whose instances it has ended. */
  ended(): Promise<readonly SandboxId[]>;
  /** This program needs it no longer. */
  close(): void;
}

export interface LeaseGuardOptions {
  readonly guard: Guard;
  readonly clock: Clock;
  /** How often it is made sure that the guard is there. */
  readonly lookMs: number;
  readonly onError: (error: SandboxError) => void;
}

/** Has instances ended when their lease is over, also when this program is stopped or gone by then. */
export class LeaseGuard implements Disposable {
  readonly #options: LeaseGuardOptions;
  readonly #deadlines = new Map<SandboxId, number>();
  #stop = () => {};

  constructor(options: LeaseGuardOptions) {
    this.#options = options;
  }

  /** What it ended while no node watched is over; the same sandboxes may run again. */
  async start(): Promise<void> {
    await this.#options.guard.start();
    for (const id of await this.#options.guard.ended()) this.#options.guard.remove(id);
    this.#look();
  }

  /** Undefined: there is nothing to watch any more. */
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

  #look(): void {
    const { clock, lookMs, onError } = this.#options;
    this.#stop = clock.schedule(lookMs, () => {
      this.#tend().catch((thrown) => onError(SandboxError.from(thrown)));
      this.#look();
    });
  }

  async #tend(): Promise<void> {
    const { guard, clock } = this.#options;
    await guard.start();
    for (const id of await guard.ended()) {
      const deadlineMs = this.#deadlines.get(id);
      if (deadlineMs === undefined || deadlineMs <= clock.monotonicMs()) continue;
      // It was ended just before this node took its lease up again; as long as that is noted, nothing new can run there.
      guard.remove(id);
      guard.set(id, deadlineMs);
    }
  }
}
