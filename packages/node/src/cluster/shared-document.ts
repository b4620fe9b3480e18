import { type Clock, type ObjectStore, pause, SandboxError } from "@sandpiper/core";
import type { z } from "zod";

/** Conflicting nodes back off exponentially, with jitter. */
const FIRST_PAUSE_MS = 4;
const MAX_PAUSE_MS = 250;
/** Enough for dozens of writers to succeed many times each. */
const GIVE_UP_MS = 15_000;

export interface SharedDocumentOptions<T> {
  readonly store: ObjectStore;
  readonly key: string;
  readonly schema: z.ZodType<T>;
  readonly clock: Clock;
}

export interface DocumentVersion<T> {
  readonly content: T;
  readonly tag: string;
}

/** A JSON object in the store that several nodes change with optimistic concurrency. */
export class SharedDocument<T> {
  readonly #options: SharedDocumentOptions<T>;

  constructor(options: SharedDocumentOptions<T>) {
    this.#options = options;
  }

  async read(): Promise<DocumentVersion<T> | undefined> {
    const { store, key } = this.#options;
    const stored = await store.get(key);
    return stored === undefined ? undefined : { content: this.#parse(stored.bytes), tag: stored.tag };
  }

  async tag(): Promise<string | undefined> {
    const { store, key } = this.#options;
    return (await store.head(key))?.tag;
  }

  /**
   * Calls `change` with the current content and writes its result, and repeats this after each conflict with another node.
   * Writes nothing if `change` returns undefined or throws.
   */
  async change(change: (content: T | undefined) => T | undefined): Promise<DocumentVersion<T> | undefined> {
    const { store, key, clock } = this.#options;
    const startedAtMs = clock.monotonicMs();
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const before = await this.read();
      const content = change(before?.content);
      if (content === undefined) return before;
      const condition = before === undefined ? ({ ifAbsent: true } as const) : { ifMatch: before.tag };
      const tag = await store.put(key, Buffer.from(JSON.stringify(content)), condition);
      if (tag !== undefined) return { content, tag };
      if (clock.monotonicMs() - startedAtMs > GIVE_UP_MS) throw contended(key, store);
      await pause(clock, pauseMs * Math.random());
    }
  }

  /** Replaces a version that must not count, or a missing object; undefined if another node was first. */
  async replace(badTag: string | undefined, content: T): Promise<DocumentVersion<T> | undefined> {
    const { store, key } = this.#options;
    const condition = badTag === undefined ? ({ ifAbsent: true } as const) : { ifMatch: badTag };
    const tag = await store.put(key, Buffer.from(JSON.stringify(content)), condition);
    return tag === undefined ? undefined : { content, tag };
  }

  #parse(bytes: Uint8Array): T {
    const { store, key, schema } = this.#options;
    try {
      return schema.parse(JSON.parse(Buffer.from(bytes).toString()));
    } catch (thrown) {
      throw new SandboxError("object_damaged", {
        message: `${key} in ${store.label} is damaged; the object was not changed`,
        details: { store: store.label, key },
        cause: thrown,
      });
    }
  }
}

function contended(key: string, { label }: ObjectStore): SandboxError {
  return new SandboxError("store_contended", {
    message: `cannot change ${key} in ${label}: every attempt conflicted with another node`,
    details: { store: label, key },
  });
}
