import { SandboxError } from "@sandpiper/protocol";
import type { DirEntry } from "./file-entry.ts";
import type { FileOptions, SandboxFiles } from "./sandbox-files.ts";

/** A sandbox may claim any number of entries, so the list in memory has a limit. */
const MAX_DIR_ENTRIES = 100_000;

/** A directory's own entries, sorted by name. */
export async function listDir(
  files: SandboxFiles,
  path: string,
  options: FileOptions = {},
): Promise<readonly DirEntry[]> {
  const entries: DirEntry[] = [];
  for await (const entry of files.list(path, { depth: 1, signal: options.signal })) {
    if (entries.length === MAX_DIR_ENTRIES) {
      throw new SandboxError("too_many_entries", {
        message: `${path} has more than ${MAX_DIR_ENTRIES} entries and was not listed as a whole`,
        details: { path, maxEntries: MAX_DIR_ENTRIES },
      });
    }
    entries.push({ name: entry.path, isDirectory: entry.kind === "directory", sizeBytes: entry.sizeBytes });
  }
  return entries;
}
