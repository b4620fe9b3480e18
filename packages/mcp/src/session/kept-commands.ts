import type { Process } from "@sandpiper/sdk";

interface KeptCommand {
  readonly sandboxId: string;
  readonly process: Process;
}

/**
 * Ended commands with more output than one answer holds. They stay readable until newer ones replace them, which limits
 * the output that a session stores in its sandboxes.
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
    // The command has ended, and its sandbox may be gone as well.
    oldest[1].process[Symbol.asyncDispose]().catch(() => {});
  }

  forgetSandbox(sandboxId: string): void {
    for (const [key, kept] of this.#kept) if (kept.sandboxId === sandboxId) this.#kept.delete(key);
  }
}
