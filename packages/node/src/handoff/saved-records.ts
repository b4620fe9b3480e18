import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { parseSavedSandbox } from "../ownership/saved-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { forEachParallel } from "../store/for-each-parallel.ts";

const NAME = /^states\/(.+)\.state$/;
const READS_AT_ONCE = 16;

export interface SavedRecordsOptions {
  readonly store: Pick<ObjectStore, "list">;
  /** What was committed last of a sandbox, by whomever. */
  readonly read: (id: SandboxId) => Promise<unknown>;
  /** Told once about a state that cannot be read. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

interface Known {
  readonly tag: string;
  /** Undefined: there is none yet, or it cannot be read. */
  readonly record: SandboxRecord | undefined;
}

/** The records of all sandboxes of a store; one whose state has not changed is not read again. */
export class SavedRecords {
  readonly #options: SavedRecordsOptions;
  #known: ReadonlyMap<SandboxId, Known> = new Map();

  constructor(options: SavedRecordsOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly SandboxRecord[]> {
    const stored = await Array.fromAsync(this.#options.store.list("states/"));
    const now = new Map<SandboxId, Known>();
    await forEachParallel(stored, READS_AT_ONCE, async ({ key, tag }) => {
      const id = NAME.exec(key)?.[1];
      if (!isSandboxId(id)) return;
      const known = this.#known.get(id);
      now.set(id, known?.tag === tag ? known : { tag, record: await this.#read(id) });
    });
    this.#known = now;
    return [...now.values()].flatMap(({ record }) => record ?? []);
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
