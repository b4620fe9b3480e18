import type { EventBody, SandboxResource } from "@sandpiper/protocol";
import type { SandboxLink } from "../sandbox-link.ts";
import { ItemStream } from "../socket/item-stream.ts";

/** Which checkpoint a sandbox was set back to, and when. */
export type Rollback = NonNullable<SandboxResource["rolledBackTo"]>;

export interface RollbackWatchOptions {
  readonly link: SandboxLink;
  readonly last: Rollback | null;
  /** Asks for the sandbox, whose answer goes to `saw`. */
  readonly look: () => Promise<unknown>;
}

/** Tells of each rollback once, by whatever way it becomes known: the sandbox itself says which was its last. */
export class RollbackWatch {
  readonly #options: RollbackWatchOptions;
  readonly #callbacks = new Set<(rollback: Rollback) => void>();
  #lastAt: string | undefined;
  #events: ItemStream<EventBody> | undefined;
  #isLooking = false;
  #mustLookAgain = false;

  constructor(options: RollbackWatchOptions) {
    this.#options = options;
    this.#lastAt = options.last?.at;
  }

  /** Called for every rollback from now on; what it returns ends that. */
  add(callback: (rollback: Rollback) => void): () => void {
    // A callback that is given twice is called twice, and taken back one at a time.
    const own = (rollback: Rollback) => callback(rollback);
    this.#callbacks.add(own);
    if (this.#events === undefined) void this.#follow();
    return () => {
      this.#callbacks.delete(own);
      if (this.#callbacks.size > 0) return;
      this.#events?.close();
      this.#events = undefined;
    };
  }

  saw(rollback: Rollback | null): void {
    if (!rollback || rollback.at === this.#lastAt) return;
    this.#lastAt = rollback.at;
    // What a callback throws is not the fault of the call that found out.
    for (const callback of this.#callbacks) queueMicrotask(() => callback(rollback));
  }

  /** Something says that there may have been one. */
  look(): void {
    this.#mustLookAgain = true;
    if (!this.#isLooking && this.#callbacks.size > 0) void this.#look();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#mustLookAgain) {
      this.#mustLookAgain = false;
      // A sandbox that cannot be asked has nothing to tell.
      await this.#options.look().catch(() => {});
    }
    this.#isLooking = false;
  }

  async #follow(): Promise<void> {
    const { connection, id } = this.#options.link;
    const events = new ItemStream<EventBody>(connection, {
      what: `waiting for rollbacks of sandbox ${id}`,
      // From the first, each time: another node counts its events anew.
      openMessage: (stream, window) => ({ type: "open", stream, kind: "events", after: 0, sandbox: id, window }),
      // A connection may have been lost with the node that had the sandbox.
      onReopened: () => {
        this.look();
        return [];
      },
    });
    this.#events = events;
    try {
      for await (const { kind } of events) if (kind === "sandbox.rolled_back") this.look();
    } catch {
      // The connection was given up: whatever is asked of the sandbox next finds out.
    }
    if (this.#events === events) this.#events = undefined;
  }
}
