import type { SandboxId } from "@sandpiper/protocol";

/** What saves, moves or destroys a sandbox happens one after the other; different sandboxes do not wait for each other. */
export class SandboxTurns {
  readonly #last = new Map<SandboxId, Promise<unknown>>();

  /** Whether somebody has its turn. */
  isTaken(id: SandboxId): boolean {
    return this.#last.has(id);
  }

  /** Resolves when nobody has; never rejects. */
  async free(id: SandboxId): Promise<void> {
    while (this.#last.has(id)) await this.#last.get(id);
  }

  async take<T>(id: SandboxId, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(id) ?? Promise.resolve();
    const turn = before.then(work);
    const settled = turn.then(
      () => {},
      () => {},
    );
    this.#last.set(id, settled);
    try {
      return await turn;
    } finally {
      if (this.#last.get(id) === settled) this.#last.delete(id);
    }
  }
}
