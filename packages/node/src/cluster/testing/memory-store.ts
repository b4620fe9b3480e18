import type { ObjectStore, PutCondition, StoredObject, StoredObjectInfo } from "@sandpiper/core";

/** A store that several nodes of a test share. Every call takes a turn of the event loop, so that calls interleave. */
export class MemoryStore implements ObjectStore {
  readonly label = "memory";
  readonly #objects = new Map<string, StoredObject>();
  #writes = 0;

  async get(key: string): Promise<StoredObject | undefined> {
    await turn();
    return this.#objects.get(key);
  }

  async head(key: string): Promise<StoredObjectInfo | undefined> {
    return await this.get(key);
  }

  async put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    await turn();
    if (!this.#holds(key, condition)) return undefined;
    const tag = String(++this.#writes);
    this.#objects.set(key, { key, size: bytes.length, modifiedAt: new Date(0), tag, bytes: bytes.slice() });
    return tag;
  }

  async delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    await turn();
    if (!this.#holds(key, condition)) return false;
    this.#objects.delete(key);
    return true;
  }

  async *list(prefix: string): AsyncGenerator<StoredObjectInfo, void, undefined> {
    await turn();
    for (const object of this.#objects.values()) if (object.key.startsWith(prefix)) yield object;
  }

  #holds(key: string, condition: PutCondition | undefined): boolean {
    if (condition === undefined) return true;
    const tag = this.#objects.get(key)?.tag;
    return "ifAbsent" in condition ? tag === undefined : tag === condition.ifMatch;
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
