import type { ObjectStore } from "@sandpiper/core";
import { type ChunkSession, type ChunkStore, chunkFolder, type StoredChunk } from "./chunk-store.ts";

const PREFIX = "chunks/";
/**
 * Each lookup costs a request. After this many absent chunks in a row, most of the following ones are absent too: a session then
 * looks up one chunk in eight and uploads the others, until a lookup finds a chunk.
 */
const ABSENT_IN_A_ROW = 16;
const LOOKUP_INTERVAL = 8;

/** Stores chunks as objects, `chunks/<first two digits>/<hash>`. */
export class ObjectChunks implements ChunkStore {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  openSession(): ChunkSession {
    const store = this.#store;
    let absent = 0;
    let lookups = 0;
    return {
      async find(hash) {
        lookups += 1;
        if (absent >= ABSENT_IN_A_ROW && lookups % LOOKUP_INTERVAL !== 0) return undefined;
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
