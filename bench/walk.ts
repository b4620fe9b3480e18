import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/**
 * Everything below a directory. Unlike readdir's recursion it follows no links: a link inside a root filesystem, such as
 * /var/run, would lead to the host's.
 */
export async function walk(dir: string): Promise<Dirent[]> {
  // A directory can disappear meanwhile.
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  const below = await Promise.all(
    entries.filter((entry) => entry.isDirectory()).map((entry) => walk(join(dir, entry.name))),
  );
  return [...entries, ...below.flat()];
}
