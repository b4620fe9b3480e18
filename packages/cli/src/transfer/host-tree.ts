import type { Stats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";

/** An entry below a directory of this machine. Links are not followed: one in an untrusted tree may lead outside. */
export interface HostEntry {
  /** Relative to the directory; empty for the directory itself. */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink" | "other";
  /** Permission bits. */
  readonly mode: number;
  /** Symlinks only. */
  readonly target?: string;
}

/** The directory and all entries below it, each directory before its contents. */
export async function* walkHostTree(directory: string, path = ""): AsyncGenerator<HostEntry> {
  const stats = await lstat(join(directory, path));
  const entry = { path, kind: kindOf(stats), mode: stats.mode & 0o7777 };
  if (entry.kind === "symlink") {
    yield { ...entry, target: await readlink(join(directory, path)) };
    return;
  }
  yield entry;
  if (entry.kind !== "directory") return;
  for (const name of (await readdir(join(directory, path))).sort()) yield* walkHostTree(directory, join(path, name));
}

function kindOf(stats: Stats): HostEntry["kind"] {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "directory";
  return stats.isSymbolicLink() ? "symlink" : "other";
}
