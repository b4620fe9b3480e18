import { readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { checkStoreKey } from "@sandpiper/core";
import { syncDirectory } from "./durable-files.ts";
import { forEachParallel } from "./for-each-parallel.ts";
import type { ObjectBatch } from "./object-batch.ts";
import { dataPath, objectPath } from "./object-layout.ts";
import { publishObject, type StagedObject, stageObject } from "./stage-object.ts";

const PARALLEL = 8;

export interface DirectoryBatchOptions {
  readonly root: string;
  readonly prepare: () => Promise<void>;
  /** For an object that somebody else has made meanwhile. */
  readonly replace: (key: string, bytes: Uint8Array) => Promise<void>;
  readonly convert: (thrown: unknown) => Error;
}

/** Nothing is published before all of it is on the disk, and each directory is synced once for all that is new in it. */
export class DirectoryBatch implements ObjectBatch {
  readonly #options: DirectoryBatchOptions;
  readonly #staged = new Map<string, StagedObject>();

  constructor(options: DirectoryBatchOptions) {
    this.#options = options;
  }

  async put(key: string, parts: readonly Uint8Array[]): Promise<void> {
    checkStoreKey(key);
    await this.#attempt(async () => {
      await this.#options.prepare();
      this.#staged.set(key, await stageObject(this.#options.root, parts));
    });
  }

  async commit(): Promise<void> {
    await this.#attempt(async () => {
      const { root, replace } = this.#options;
      const staged = [...this.#staged];
      await forEachParallel(staged, PARALLEL, ([, { directory }]) => syncDirectory(directory));
      const folders = new Set<string>();
      await forEachParallel(staged, PARALLEL, async ([key, object]) => {
        const path = objectPath(root, key);
        if (await publishObject(object, path)) folders.add(dirname(path));
        else await replace(key, await readFile(dataPath(object.directory, object.tag)));
      });
      await forEachParallel(folders, PARALLEL, syncDirectory);
      await this.discard();
    });
  }

  async discard(): Promise<void> {
    await forEachParallel([...this.#staged.values()], PARALLEL, ({ directory }) =>
      rm(directory, { recursive: true, force: true }),
    );
    this.#staged.clear();
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      throw this.#options.convert(thrown);
    }
  }
}
