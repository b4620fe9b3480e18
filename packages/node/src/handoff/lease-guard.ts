import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Clock, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { Guard, instanceCgroup } from "@sandpiper/providers";

export interface LeaseGuardOptions {
  readonly home: string;
  /** Where the gVisor provider keeps its instances. */
  readonly stateDirectory: string;
  readonly clock: Clock;
  /** How often it is made sure that the guard is there. */
  readonly lookMs: number;
  readonly onError: (error: SandboxError) => void;
}

/** Has instances ended when their lease is over, also when this program is stopped or gone by then. */
export class LeaseGuard implements Disposable {
  readonly #options: LeaseGuardOptions;
  readonly #guard: Guard;
  #stop = () => {};

  constructor(options: LeaseGuardOptions) {
    this.#options = options;
    const { home, stateDirectory, clock } = options;
    const place = createHash("sha256").update(home).digest("hex").slice(0, 16);
    // In memory, where there is such a place: a full disk must not end a lease.
    const directory = existsSync("/run") ? join("/run/sandpiper", place) : join(home, "guard");
    this.#guard = new Guard({ directory, clock, cgroupPath: (id) => instanceCgroup(id, { stateDirectory }) });
  }

  /** What it ended while no node watched is over; the same sandboxes may run again. */
  async start(): Promise<void> {
    await this.#guard.start();
    for (const id of await this.#guard.ended()) this.#guard.remove(id);
    this.#look();
  }

  /** Undefined: there is nothing to watch any more. */
  setDeadline(id: SandboxId, deadlineMs: number | undefined): void {
    try {
      if (deadlineMs === undefined) this.#guard.remove(id);
      else this.#guard.set(id, deadlineMs);
    } catch (thrown) {
      this.#options.onError(SandboxError.from(thrown));
    }
  }

  [Symbol.dispose](): void {
    this.#stop();
  }

  #look(): void {
    const { clock, lookMs, onError } = this.#options;
    this.#stop = clock.schedule(lookMs, () => {
      this.#guard.start().catch((thrown) => onError(SandboxError.from(thrown)));
      this.#look();
    });
  }
}
