import { type Clock, pause } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { CheckpointVault } from "../store/checkpoint-store.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import type { ClusterCustody } from "../ownership/lease-ownership.ts";

const LOOK_EVERY_MS = 50;

export interface FetchAheadOptions {
  readonly custody: Pick<ClusterCustody, "peek">;
  readonly vault: Pick<CheckpointVault, "fetchAhead" | "dropAhead">;
  readonly clock: Clock;
  /** Tells the owner that it need not wait any longer. */
  readonly onFetched: () => void;
}

/**
 * Looks for checkpoints that the owner of a sandbox makes before it stops it, and brings them here: of the last one, for
 * which the sandbox stands still, only what has changed since is then to be loaded. Disposing it lets go of what it brought.
 */
export class FetchAhead implements AsyncDisposable {
  readonly #options: FetchAheadOptions;
  readonly #id: SandboxId;
  readonly #stopped = new AbortController();
  readonly #running: Promise<void>;

  constructor({ record, checkpoints }: SavedSandbox, options: FetchAheadOptions) {
    this.#options = options;
    this.#id = record.id;
    this.#running = this.#run(checkpoints.at(-1)?.id);
  }

  /** What is on its way still arrives. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#options.vault.dropAhead(this.#id);
  }

  async #run(seen: string | undefined): Promise<void> {
    const { custody, vault, clock, onFetched } = this.#options;
    const { signal } = this.#stopped;
    for (let last = seen; !signal.aborted; ) {
      // It spares time and is no more: whatever fails here is tried again, and told, by the load.
      const newest = (await custody.peek(this.#id).catch(() => undefined))?.checkpoints.at(-1)?.id;
      if (newest === undefined || newest === last) await pause(clock, LOOK_EVERY_MS, signal);
      else await vault.fetchAhead(this.#id, newest, signal).then(onFetched, () => {});
      last = newest ?? last;
    }
  }
}
