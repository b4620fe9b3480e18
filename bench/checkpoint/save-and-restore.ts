import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Saveable } from "./saveable.ts";

export interface SavedAndRestored {
  /** A checkpoint that leaves the sandbox running. */
  readonly runningMs: number;
  readonly restoreMs: number;
  /** The restore without the time to prepare the instance. */
  readonly filledMs: number;
  /** A checkpoint that ends the sandbox. */
  readonly stoppingMs: number;
}

/**
 * Saves a sandbox and leaves it running, restores a second one from the files, saves the second one with stop, and removes
 * it. Both run the same number of execs before their save.
 */
export async function saveAndRestore(
  original: Saveable,
  { dir, execs }: { readonly dir: string; readonly execs: number },
): Promise<SavedAndRestored> {
  const [first, second] = await Promise.all([mkdtemp(join(dir, "image-")), mkdtemp(join(dir, "image-"))]);
  try {
    const runningMs = await original.checkpoint(first, { keepsRunning: true });
    const { sandbox, tookMs, preparedMs } = await original.restore(first);
    await using copy = sandbox;
    await copy.use(execs);
    const stoppingMs = await copy.checkpoint(second, { keepsRunning: false });
    return { runningMs, restoreMs: tookMs, filledMs: tookMs - preparedMs, stoppingMs };
  } finally {
    await Promise.all([first, second].map((image) => rm(image, { recursive: true, force: true })));
  }
}
