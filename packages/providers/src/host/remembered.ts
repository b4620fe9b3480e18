import { createHash } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { publishFile } from "./publish-file.ts";

export interface RememberedOptions {
  /** Keeps the fact for the next program. */
  readonly directory: string;
  /** Names the computation; another text is another fact. */
  readonly fact: string;
  readonly files: readonly string[];
}

/**
 * Caches a fact that depends only on files and takes a moment to compute. It is computed again when a file was replaced
 * or written to. An empty answer is not kept.
 */
export async function remembered(options: RememberedOptions, compute: () => Promise<string>): Promise<string> {
  const { directory, fact, files } = options;
  const versions = await Promise.all(files.map(versionOf));
  if (versions.includes(undefined)) return await compute();
  const key = createHash("sha256")
    .update(JSON.stringify([fact, versions]))
    .digest("hex");
  const path = join(directory, key.slice(0, 32));
  const known = await readFile(path, "utf8").catch(() => "");
  if (known !== "") return known;
  const found = await compute();
  if (found !== "") await publishFile(path, (draft) => writeFile(draft, found, { mode: 0o600 })).catch(() => {});
  return found;
}

/** Not by its modification time alone, which programs can set; they cannot set the inode's change time. */
async function versionOf(path: string): Promise<string | undefined> {
  const info = await stat(path, { bigint: true }).catch(() => undefined);
  return info && [path, info.dev, info.ino, info.size, info.mtimeNs, info.ctimeNs].join(" ");
}
