import type { ObjectStore } from "@sandpiper/core";
import { type ChunkSession, type ChunkStore, chunkFolder, type StoredChunk } from "./chunk-store.ts";

const PREFIX = "chunks/";
/**
 * To ask for a chunk is a request of its own. Once so many in a row were not there, most of the next ones will not be there
 * either: only some are asked for, and the others are sent, until one is found again.
 */
const ABSENT_IN_A_ROW = 16;
const ASKED_EVERY = 8;

/** Chunks as objects of a store: `chunks/<first two digits>/<hash>`. */
export class ObjectChunks implements ChunkStore {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  openSession(): ChunkSession {
    const store = this.#store;
    let absent = 0;
    let asked = 0;
    return {
      async find(hash) {
        asked += 1;
        if (absent >= ABSENT_IN_A_ROW && asked % ASKED_EVERY !== 0) return undefined;
        const info = await store.head(chunkKey(hash));
        absent = info === undefined ? absent + 1 : 0;
        return info && { hash, modifiedAt: info.modifiedAt, tag: info.tag };
      },
      async get(hash) {
        return (await store.get(chunkKey(hash)))?.bytes;
      },
      async put(hash, parts) {
        await store.put(chunkKey(hash), Buffer.concat(parts));
      },
      async commit() {},
      async discard() {},
    };
  }

  async *list(): AsyncIterable<StoredChunk> {
    for await (const { key, modifiedAt, tag } of this.#store.list(PREFIX)) {
      yield { hash: key.slice(key.lastIndexOf("/") + 1), modifiedAt, tag };
    }
  }

  delete({ hash, tag }: StoredChunk): Promise<boolean> {
    return this.#store.delete(chunkKey(hash), { ifMatch: tag });
  }
}

function chunkKey(hash: string): string {
  return `${PREFIX}${chunkFolder(hash)}/${hash}`;
}
