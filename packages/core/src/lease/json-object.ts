import { type Clock, SandboxError } from "@sandpiper/protocol";
import type { z } from "zod";
import type { ObjectStore, StoredObject } from "../store/object-store.ts";

export interface Versioned<T> {
  readonly value: T;
  readonly tag: string;
}

export interface JsonObjectOptions<T> {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly key: string;
  readonly schema: z.ZodType<T>;
  readonly attemptMs: number;
}

/**
 * One JSON object of the store, changed only by compare-and-swap. When the answer to a write is lost, it reads the object to
 * see whether the write took effect. A write that fails because of another version may itself have written that version, if
 * the store's client repeated it; a nonce in the object shows that.
 */
export class JsonObject<T> {
  readonly #options: JsonObjectOptions<T>;

  constructor(options: JsonObjectOptions<T>) {
    this.#options = options;
  }

  async read(): Promise<Versioned<T> | undefined> {
    const stored = await this.#get();
    return stored && { value: this.#parse(stored.bytes), tag: stored.tag };
  }

  /** Undefined if the object has changed and nothing was written. No two written values may be equal. */
  async swap(known: Versioned<T> | undefined, value: T): Promise<Versioned<T> | undefined> {
    const { store, key } = this.#options;
    const bytes = new TextEncoder().encode(JSON.stringify(value));
    const condition = known === undefined ? { ifAbsent: true as const } : { ifMatch: known.tag };
    try {
      const tag = await this.#limited("writing", store.put(key, bytes, condition));
      return tag === undefined ? undefined : { value, tag };
    } catch (thrown) {
      const stored = await this.#get().catch(() => undefined);
      if (stored === undefined || !isSame(stored.bytes, bytes)) throw thrown;
      return { value, tag: stored.tag };
    }
  }

  /** False if the object has changed. */
  async delete(known: Versioned<T>): Promise<boolean> {
    const { store, key } = this.#options;
    try {
      return await this.#limited("deleting", store.delete(key, { ifMatch: known.tag }));
    } catch (thrown) {
      if ((await this.#get().catch(() => known)) === undefined) return true;
      throw thrown;
    }
  }

  #get(): Promise<StoredObject | undefined> {
    const { store, key } = this.#options;
    return this.#limited("reading", store.get(key));
  }

  #parse(bytes: Uint8Array): T {
    const { schema, key, store } = this.#options;
    try {
      return schema.parse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
    } catch (cause) {
      throw new SandboxError("object_damaged", {
        message: `${key} in the store ${store.label} was not written by a node`,
        cause,
      });
    }
  }

  /** A store that does not answer must not delay the renewal of leases. */
  #limited<R>(doing: string, call: Promise<R>): Promise<R> {
    const { clock, attemptMs, key, store } = this.#options;
    return new Promise((resolve, reject) => {
      const takeBack = clock.schedule(attemptMs, () => {
        reject(
          new SandboxError("store_timeout", {
            message: `${doing} ${key} took longer than ${attemptMs} ms in the store ${store.label}`,
          }),
        );
      });
      call.then(resolve, reject).finally(takeBack);
    });
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}
