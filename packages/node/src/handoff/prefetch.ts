import { type Clock, pause } from "@sandpiper/core";
import type { Ownership } from "../ownership/ownership.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { CheckpointStore } from "../store/checkpoint-store.ts";

const POLL_MS = 50;

export interface PrefetchOptions {
  readonly ownership: Pick<Ownership, "peek">;
  readonly checkpointStore: Pick<CheckpointStore, "prefetch" | "dropPrefetched">;
  readonly clock: Clock;
  /** Called after each prefetch, to tell the owner that it need not wait any longer. */
  readonly onFetched: () => void;
}

/**
 * Downloads the checkpoints that the owner takes of the running sandbox during a handoff. For the final checkpoint, which stops
 * the sandbox, only the changed chunks are left to download. Disposing this deletes the downloads.
 */
export class Prefetch implements AsyncDisposable {
  readonly #options: PrefetchOptions;
  readonly #sandbox: SandboxRecord;
  readonly #stopped = new AbortController();
  readonly #running: Promise<void>;

  constructor({ record, checkpoints }: SavedSandbox, options: PrefetchOptions) {
    this.#options = options;
    this.#sandbox = record;
    this.#running = this.#run(checkpoints.at(-1)?.id);
  }

  /** Waits for chunks that are being downloaded. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#options.checkpointStore.dropPrefetched(this.#sandbox.id);
  }

  async #run(seen: string | undefined): Promise<void> {
    const { ownership, checkpointStore, clock, onFetched } = this.#options;
    const { signal } = this.#stopped;
    for (let last = seen; !signal.aborted; ) {
      // Prefetching is optional: the load retries and reports all failures.
      const newest = (await ownership.peek(this.#sandbox.id).catch(() => undefined))?.checkpoints.at(-1)?.id;
      if (newest === undefined || newest === last) await pause(clock, POLL_MS, signal);
      else await checkpointStore.prefetch(this.#sandbox, newest, signal).then(onFetched, () => {});
      last = newest ?? last;
    }
  }
}
