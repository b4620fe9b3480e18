import { randomUUID } from "node:crypto";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import type { ChunkStore, StoredChunk } from "./chunk-store.ts";
import { forEachParallel } from "./for-each-parallel.ts";

const PARALLEL = 8;

export interface CollectGarbageOptions {
  readonly store: ObjectStore;
  readonly chunks: ChunkStore;
  readonly graceMs: number;
  /** The hashes that all committed manifests refer to, read anew with each call. */
  readonly referenced: () => AsyncIterable<string>;
}

export interface CollectGarbageResult {
  readonly deletedChunks: number;
  readonly keptChunks: number;
}

/**
 * Deletes chunks that no manifest refers to. Those that a writer may still rely on are safe whatever it does: it takes only chunks
 * that are younger than half the grace period, or writes them again, and what was written again has another tag.
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
  // After the listing, because a manifest that was not committed before may refer to young chunks only. Twice, because a
  // reference may move from a manifest that is read late to one that was read early, with a fork whose parent is deleted.
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

/** Chunks are as old as the store says, so its clock decides and not this machine's. */
async function storeTime(store: ObjectStore): Promise<Date> {
  const key = `clock/${randomUUID()}`;
  await store.put(key, new Uint8Array(0));
  const now = await store.head(key);
  await store.delete(key);
  if (now !== undefined) return now.modifiedAt;
  throw new SandboxError("unavailable", {
    reason: "store_inconsistent",
    message: `The store ${store.label} does not show what was just written`,
    hint: "It must be consistent: on a network file system, mount it with actimeo=0.",
  });
}
