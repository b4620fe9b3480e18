import type { ObjectStore } from "@sandpiper/core";

/** Many objects that are safe only together, at a fraction of what as many safe puts cost. */
export interface ObjectBatch {
  /** The object may be seen now or after the commit. Its bytes may be reused once this returns. */
  put(key: string, parts: readonly Uint8Array[]): Promise<void>;
  /** When it returns, every object of the batch outlives a loss of power. */
  commit(): Promise<void>;
  /** Forgets what was put and not committed; some of it may stay. */
  discard(): Promise<void>;
}

/** A store in which a batch is cheaper than its puts. */
export interface BatchingStore extends ObjectStore {
  openBatch(): ObjectBatch;
}

export function openBatch(store: ObjectStore): ObjectBatch {
  return isBatching(store) ? store.openBatch() : new PutBatch(store);
}

function isBatching(store: ObjectStore): store is BatchingStore {
  return "openBatch" in store;
}

class PutBatch implements ObjectBatch {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async put(key: string, parts: readonly Uint8Array[]): Promise<void> {
    await this.#store.put(key, Buffer.concat(parts));
  }

  async commit(): Promise<void> {}

  async discard(): Promise<void> {}
}
