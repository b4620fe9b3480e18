import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { parseSavedSandbox } from "../ownership/saved-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { forEachParallel } from "../store/for-each-parallel.ts";

const NAME = /^states\/(.+)\.state$/;
const PARALLEL_READS = 16;

export interface SavedRecordsOptions {
  readonly store: Pick<ObjectStore, "list">;
  /** Reads the last committed state of a sandbox, from any node. */
  readonly read: (id: SandboxId) => Promise<unknown>;
  /** Called once for each state that cannot be read. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

interface CachedRecord {
  readonly tag: string;
  /** Undefined if there is none yet, or if it cannot be read. */
  readonly record: SandboxRecord | undefined;
}

/** Caches the records of all sandboxes in a store, and reads a state again only after it changed. */
export class SavedRecords {
  readonly #options: SavedRecordsOptions;
  #cache: ReadonlyMap<SandboxId, CachedRecord> = new Map();

  constructor(options: SavedRecordsOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly SandboxRecord[]> {
    const stored = await Array.fromAsync(this.#options.store.list("states/"));
    const next = new Map<SandboxId, CachedRecord>();
    await forEachParallel(stored, PARALLEL_READS, async ({ key, tag }) => {
      const id = NAME.exec(key)?.[1];
      if (!isSandboxId(id)) return;
      const cached = this.#cache.get(id);
      next.set(id, cached?.tag === tag ? cached : { tag, record: await this.#read(id) });
    });
    this.#cache = next;
    return [...next.values()].flatMap(({ record }) => record ?? []);
  }

  async #read(id: SandboxId): Promise<SandboxRecord | undefined> {
    try {
      const content = await this.#options.read(id);
      return content === undefined ? undefined : parseSavedSandbox(content).record;
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      if (error.retryable) throw error;
      this.#options.onError(error, id);
      return undefined;
    }
  }
}
