import { join } from "node:path";
import { listLeft } from "../../bench/leftovers.ts";
import { walk } from "../../bench/walk.ts";
import type { ChaosBed } from "./chaos-bed.ts";

/** A store's objects of single sandboxes; chunks are shared, and garbage collection removes them later. */
const SANDBOX_PREFIXES = ["locks/", "states/", "checkpoints/", "nodes/"];

/** Leftovers of destroyed sandboxes on stopped nodes, on their engines and in the store. */
export async function findLeaks({ nodes, engines, shared }: ChaosBed, ids: readonly string[]): Promise<string[]> {
  const left: string[] = [];
  for (const { homeDir, name } of nodes) {
    left.push(...(await listLeft(join(homeDir, "node"), ids)));
    const scratch = await walk(join(homeDir, "checkpoints"));
    left.push(...scratch.map((entry) => `scratch of ${name}: ${entry.name}`));
  }
  for (const engine of engines) left.push(...(await engine.left()).map((each) => `on engine ${engine.name}: ${each}`));
  for (const prefix of SANDBOX_PREFIXES) {
    for await (const { key } of shared.store.list(prefix)) left.push(`object ${key}`);
  }
  return [...new Set(left)];
}
