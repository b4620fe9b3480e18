/** Objects that nodes share, with names and compare-and-swap. */
export interface ObjectStore {
  /** The name for messages, such as "file:///srv/sandpiper" or "s3://bucket/prefix". */
  readonly label: string;
  /** Undefined if the object does not exist. Throws `object_damaged` for an object that is larger than nodes write. A read after a write, by any node, returns what was written. */
  get(key: string): Promise<StoredObject | undefined>;
  /** The object's size, tag and time of its last write. */
  head(key: string): Promise<StoredObjectInfo | undefined>;
  /**
   * Writes the object atomically. Resolves with its new tag, or with undefined if the condition did not hold and
   * nothing was written.
   */
  put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined>;
  /** False if the condition did not hold. Without a condition, a missing object is a success. */
  delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean>;
  /** All objects with the prefix, unordered; concurrent writes may be missing. */
  list(prefix: string): AsyncIterable<StoredObjectInfo>;
}

export interface StoredObjectInfo {
  readonly key: string;
  readonly size: number;
  /** By the store's clock. */
  readonly modifiedAt: Date;
  /** Changes with every write. */
  readonly tag: string;
}

/** Without the time of its last write, which Google Cloud Storage does not send with the bytes. */
export interface StoredObject extends Omit<StoredObjectInfo, "modifiedAt"> {
  readonly bytes: Uint8Array;
}

/** `ifAbsent`: the object must not exist. `ifMatch`: it must still have this tag. */
export type PutCondition = { readonly ifAbsent: true } | { readonly ifMatch: string };
