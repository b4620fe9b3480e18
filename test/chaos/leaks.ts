import { readdirSync } from "node:fs";
import { join } from "node:path";
import { listLeft } from "../../bench/leftovers.ts";
import type { ChaosBed } from "./chaos-bed.ts";

/** What a store keeps of sandboxes; chunks are shared, and collected in their own time. */
const PREFIXES = ["locks/", "states/", "checkpoints/", "nodes/"];

/** Everything that is left of sandboxes that were destroyed, on nodes that were stopped. */
export async function findLeaks({ nodes, shared }: ChaosBed, ids: readonly string[]): Promise<string[]> {
  const left: string[] = [];
  for (const { home, name } of nodes) {
    left.push(...(await listLeft(join(home, "node"), ids)));
    left.push(...filesIn(join(home, "checkpoints")).map((file) => `scratch of ${name}: ${file}`));
  }
  for (const prefix of PREFIXES) {
    for await (const { key } of shared.store.list(prefix)) left.push(`object ${key}`);
  }
  return [...new Set(left)];
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
