/** What is shared between nodes: small objects with names, and a way to change one only if nobody else has. */
export interface ObjectStore {
  /** As users know it, for messages: "file:///srv/sandpiper", "s3://bucket/prefix". */
  readonly label: string;
  /** Undefined: there is no such object. A read that follows a write, by whomever, gives what was written. */
  get(key: string): Promise<StoredObject | undefined>;
  /** As `get`, without the bytes. */
  head(key: string): Promise<StoredObjectInfo | undefined>;
  /**
   * Writes the whole object, or nothing of it. Gives its new tag, or undefined when the condition did not hold: somebody
   * else was there first, and nothing was written.
   */
  put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined>;
  /** False: the condition did not hold. An object that is not there is fine without a condition. */
  delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean>;
  /** Everything whose name begins with the prefix, in no order; what is written meanwhile may be missing. */
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

export interface StoredObject extends StoredObjectInfo {
  readonly bytes: Uint8Array;
}

/** `ifAbsent`: there must be no such object. `ifMatch`: it must still be the one with this tag. */
export type PutCondition = { readonly ifAbsent: true } | { readonly ifMatch: string };
