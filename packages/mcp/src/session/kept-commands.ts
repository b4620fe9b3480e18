import type { Process } from "@sandpiper/sdk";

interface KeptCommand {
  readonly sandboxId: string;
  readonly process: Process;
}

/**
 * Commands that have ended with more output than an answer carries. They stay readable until newer ones take their place,
 * so that a session does not fill its sandboxes with output that nobody reads.
 */
export class KeptCommands {
  readonly #limit: number;
  readonly #kept = new Map<string, KeptCommand>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(sandboxId: string, process: Process): void {
    this.#kept.set(`${sandboxId}/${process.id}`, { sandboxId, process });
    const [oldest] = this.#kept;
    if (this.#kept.size <= this.#limit || oldest === undefined) return;
    this.#kept.delete(oldest[0]);
    // It has ended; that its sandbox may be gone as well is no news to anybody.
    oldest[1].process[Symbol.asyncDispose]().catch(() => {});
  }

  forgetSandbox(sandboxId: string): void {
    for (const [key, kept] of this.#kept) if (kept.sandboxId === sandboxId) this.#kept.delete(key);
  }
}
