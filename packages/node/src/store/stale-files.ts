import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** No write takes that long, whatever the clocks of the machines that share a directory say. */
const STALE_MS = 3_600_000;

/** Removes what writers that died have left in a directory; `keep` says what is in use. */
export async function removeStaleFiles(directory: string, keep: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(directory)) {
    if (keep(name)) continue;
    const path = join(directory, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > STALE_MS) await rm(path, { recursive: true, force: true });
  }
}
