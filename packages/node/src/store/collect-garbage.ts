import { randomUUID } from "node:crypto";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import type { ChunkStore, StoredChunk } from "./chunk-store.ts";
import { forEachParallel } from "./for-each-parallel.ts";

const PARALLEL = 8;

export interface CollectGarbageOptions {
  readonly store: ObjectStore;
  readonly chunks: ChunkStore;
  readonly graceMs: number;
  /** The hashes in all committed manifests; each call reads the manifests again. */
  readonly referenced: () => AsyncIterable<string>;
}

export interface CollectGarbageResult {
  readonly deletedChunks: number;
  readonly keptChunks: number;
}

/**
 * Deletes chunks that no manifest refers to. Chunks that a concurrent save relies on are safe: a save reuses only chunks younger
 * than half the grace period and writes all others again, which changes their tag.
 */
export async function collectGarbage(options: CollectGarbageOptions): Promise<CollectGarbageResult> {
  const { chunks, graceMs, store } = options;
  const beforeMs = (await storeTime(store)).getTime() - graceMs;
  const old = new Map<string, StoredChunk[]>();
  let keptChunks = 0;
  for await (const chunk of chunks.list()) {
    if (chunk.modifiedAt.getTime() < beforeMs) old.set(chunk.hash, [...(old.get(chunk.hash) ?? []), chunk]);
    else keptChunks += 1;
  }
  // Read after the listing: a manifest that is committed later refers only to young chunks. Read twice: while the manifests
  // are read, a fork may take over the chunks of a parent that is then deleted.
  for (let pass = 0; pass < 2 && old.size > 0; pass += 1) {
    for await (const hash of options.referenced()) {
      keptChunks += old.get(hash)?.length ?? 0;
      old.delete(hash);
    }
  }
  let deletedChunks = 0;
  await forEachParallel([...old.values()].flat(), PARALLEL, async (chunk) => {
    if (await chunks.delete(chunk)) deletedChunks += 1;
    else keptChunks += 1;
  });
  return { deletedChunks, keptChunks };
}

/** The store's clock sets the age of chunks, so this machine's clock does not count. */
async function storeTime(store: ObjectStore): Promise<Date> {
  const key = `clock/${randomUUID()}`;
  await store.put(key, new Uint8Array(0));
  const now = await store.head(key);
  await store.delete(key);
  if (now !== undefined) return now.modifiedAt;
  throw new SandboxError("store_inconsistent", {
    message: `the store ${store.label} does not list an object that was just written`,
  });
}
