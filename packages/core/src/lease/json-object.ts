import type { z } from "zod";
import type { Clock } from "../clock.ts";
import { SandboxError } from "../sandbox-error.ts";
import type { ObjectStore } from "../store/object-store.ts";

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
 * One JSON object of the store, changed only by compare-and-swap. A change that fails, or finds that somebody was first,
 * may have taken effect all the same: its answer was lost, and the store's client repeated it. Whoever changes it reads
 * it again and recognises its own.
 */
export class JsonObject<T> {
  readonly #options: JsonObjectOptions<T>;

  constructor(options: JsonObjectOptions<T>) {
    this.#options = options;
  }

  async read(): Promise<Versioned<T> | undefined> {
    const { store, key } = this.#options;
    const stored = await this.#limited("reading", store.get(key));
    return stored && { value: this.#parse(stored.bytes), tag: stored.tag };
  }

  /** Undefined: it is not as it was known, and nothing was written. */
  async swap(known: Versioned<T> | undefined, value: T): Promise<Versioned<T> | undefined> {
    const { store, key } = this.#options;
    const bytes = new TextEncoder().encode(JSON.stringify(value));
    const condition = known === undefined ? { ifAbsent: true as const } : { ifMatch: known.tag };
    const tag = await this.#limited("writing", store.put(key, bytes, condition));
    return tag === undefined ? undefined : { value, tag };
  }

  /** False: it is not as it was known. */
  delete(known: Versioned<T>): Promise<boolean> {
    const { store, key } = this.#options;
    return this.#limited("deleting", store.delete(key, { ifMatch: known.tag }));
  }

  #parse(bytes: Uint8Array): T {
    const { schema, key, store } = this.#options;
    try {
      return schema.parse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
    } catch (cause) {
      throw new SandboxError("data_loss", {
        reason: "damaged_object",
        message: `${key} in the store ${store.label} is not what a node writes`,
        hint: "see who else writes to this store; the object is left as it is",
        cause,
      });
    }
  }

  /** A store that does not answer must not hold up whoever has a lease to renew. */
  #limited<R>(doing: string, call: Promise<R>): Promise<R> {
    const { clock, attemptMs, key, store } = this.#options;
    return new Promise((resolve, reject) => {
      const takeBack = clock.schedule(attemptMs, () => {
        reject(
          new SandboxError("unavailable", {
            reason: "store_timeout",
            message: `${doing} ${key} took longer than ${attemptMs} ms in the store ${store.label}`,
          }),
        );
      });
      call.then(resolve, reject).finally(takeBack);
    });
  }
}
