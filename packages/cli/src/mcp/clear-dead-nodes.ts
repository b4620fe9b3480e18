import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { OwnNodeOptions } from "./own-node.ts";

/**
 * Destroys the sandboxes of programs that were killed: each had its own node, whose home directory still exists.
 * Failures are reported, and the next start retries.
 */
export async function clearDeadNodes(
  { directory, ...config }: OwnNodeOptions,
  { onError }: { readonly onError: (thrown: unknown) => void },
): Promise<void> {
  for (const name of await namesIn(directory)) {
    if (isAlive(Number(name.split("-", 1)[0]))) continue;
    try {
      const { openOwnNode } = await import("./own-node.ts");
      const node = await openOwnNode(join(directory, name), config);
      await node[Symbol.asyncDispose]();
    } catch (thrown) {
      if (!isInUse(thrown)) onError(thrown);
    }
  }
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).filter((name) => /^\d+-[0-9a-f]+$/.test(name));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw thrown;
  }
}

/** A PID that another process has taken only delays the removal until that process ends. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Another program is removing the same home. */
function isInUse(thrown: unknown): boolean {
  return (thrown as { readonly reason?: unknown }).reason === "home_in_use";
}
