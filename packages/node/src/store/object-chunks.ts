import type { ObjectStore } from "@sandpiper/core";
import { type ChunkSession, type ChunkStore, chunkFolder, type StoredChunk } from "./chunk-store.ts";

const PREFIX = "chunks/";

/** Chunks as objects of a store: `chunks/<first two digits>/<hash>`. */
export class ObjectChunks implements ChunkStore {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  openSession(): ChunkSession {
    const store = this.#store;
    return {
      async find(hash) {
        const info = await store.head(chunkKey(hash));
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
