/** A stored piece of a checkpoint, named by a keyed hash of its content: all writers of a name write the same content. */
export interface StoredChunk {
  readonly hash: string;
  readonly modifiedAt: Date;
  /** Changes with every write. */
  readonly tag: string;
}

export interface ChunkStore {
  /** For one save or one load: a session may cache listings for as long as it exists. */
  openSession(): ChunkSession;
  list(): AsyncIterable<StoredChunk>;
  /** False if the chunk was written again after it was listed, or no longer exists. */
  delete(chunk: StoredChunk): Promise<boolean>;
}

export interface ChunkSession {
  /** Undefined if the chunk does not exist, or if looking for it would cost more than another upload. */
  find(hash: string): Promise<StoredChunk | undefined>;
  get(hash: string): Promise<Uint8Array | undefined>;
  /** Renews the modification time of an existing chunk. The caller may reuse the memory once this resolves. */
  put(hash: string, parts: readonly Uint8Array[]): Promise<void>;
  /** Once this resolves, all chunks that were put are visible and survive a power loss. */
  commit(): Promise<void>;
  /** Deletes uncommitted chunks, as far as the store allows. */
  discard(): Promise<void>;
}

/** Two hex digits: few folders to list, and few chunks in each. */
export function chunkFolder(hash: string): string {
  return hash.slice(0, 2);
}
