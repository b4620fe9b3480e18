/** A piece of a checkpoint as it is stored. Its name is the hash of its content, so whoever writes it writes the same. */
export interface StoredChunk {
  readonly hash: string;
  readonly modifiedAt: Date;
  /** Changes when it is written again. */
  readonly tag: string;
}

/** Where chunks are kept. */
export interface ChunkStore {
  /** For one save or one load; what it has seen of the store may be as old as itself. */
  openSession(): ChunkSession;
  list(): AsyncIterable<StoredChunk>;
  /** False: it was written again meanwhile, or is gone. */
  delete(chunk: StoredChunk): Promise<boolean>;
}

export interface ChunkSession {
  /** Undefined: it is not there, or to find out would cost more than to put it again. */
  find(hash: string): Promise<StoredChunk | undefined>;
  get(hash: string): Promise<Uint8Array | undefined>;
  /** Makes it young again if it is there already. The memory may be used for something else once this returns. */
  put(hash: string, parts: readonly Uint8Array[]): Promise<void>;
  /** When it returns, all that was put can be found, also after a loss of power. */
  commit(): Promise<void>;
  /** Takes back what was put and not committed, as far as that is possible. */
  discard(): Promise<void>;
}

/** Few enough hex digits for each folder of a store to be listed in one go, and enough for it to be short. */
export function chunkFolder(hash: string): string {
  return hash.slice(0, 2);
}
