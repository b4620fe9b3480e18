import type { ObjectStore } from "@sandpiper/core";
import { forEachParallel } from "../store/for-each-parallel.ts";
import { parseSavedSandbox, type SavedSandbox } from "./saved-sandbox.ts";

const PARALLEL_READS = 16;

/**
 * The states of all sandboxes in a store, of a standalone node or of a cluster. Rejects if one cannot be read: the caller must not
 * conclude that it needs nothing.
 */
export async function savedSandboxes(store: Pick<ObjectStore, "list" | "get">): Promise<readonly SavedSandbox[]> {
  const listed = await Array.fromAsync(store.list("states/"));
  const saved: SavedSandbox[] = [];
  await forEachParallel(listed, PARALLEL_READS, async ({ key }) => {
    const stored = await store.get(key);
    if (stored === undefined) return;
    const state = JSON.parse(Buffer.from(stored.bytes).toString());
    // A cluster wraps the state with the epoch of its owner; before the first commit it has no content.
    const content = "epoch" in state ? state.content : state;
    if (content !== undefined) saved.push(parseSavedSandbox(content));
  });
  return saved;
}
