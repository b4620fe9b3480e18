import type { EventBody, SandboxResource } from "@sandpiper/protocol";
import type { SandboxLink } from "../sandbox-link.ts";
import { ItemStream } from "../socket/item-stream.ts";

/** The checkpoint to which a sandbox was restored, and when. */
export type Rollback = NonNullable<SandboxResource["rolledBackTo"]>;

export interface RollbackWatchOptions {
  readonly link: SandboxLink;
  readonly last: Rollback | null;
  /** Requests the sandbox; the answer goes to `saw`. */
  readonly look: () => Promise<unknown>;
}

/** Reports each rollback once, although several sources detect it: the sandbox's resource names its last one. */
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

  /** Calls back for every later rollback, until the returned function is called. */
  add(callback: (rollback: Rollback) => void): () => void {
    // A callback that is registered twice is called twice, and removed one at a time.
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
    // An error of a callback must not fail the call that detected the rollback.
    for (const callback of this.#callbacks) queueMicrotask(() => callback(rollback));
  }

  /** Checks for a rollback. */
  look(): void {
    this.#mustLookAgain = true;
    if (!this.#isLooking && this.#callbacks.size > 0) void this.#look();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#mustLookAgain) {
      this.#mustLookAgain = false;
      // Without an answer, the next request detects a rollback.
      await this.#options.look().catch(() => {});
    }
    this.#isLooking = false;
  }

  async #follow(): Promise<void> {
    const { connection, id } = this.#options.link;
    const events = new ItemStream<EventBody>(connection, {
      what: `waiting for rollbacks of sandbox ${id}`,
      // From the first event each time, because each node has its own event ids.
      openMessage: (stream, window) => ({ type: "open", stream, kind: "events", after: 0, sandbox: id, window }),
      // The connection may have been lost with the sandbox's node.
      onReopened: () => {
        this.look();
        return [];
      },
    });
    this.#events = events;
    try {
      for await (const { kind } of events) if (kind === "sandbox.rolled_back") this.look();
    } catch {
      // After the client has given up on the connection, the next request detects a rollback.
    }
    if (this.#events === events) this.#events = undefined;
  }
}
