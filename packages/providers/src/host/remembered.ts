import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { currentOwner } from "./process-owner.ts";
import { removeAbandoned, transientName } from "./transient-name.ts";

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
  if (found !== "") await keep(directory, path, found).catch(() => {});
  return found;
}

/** Not by its modification time alone, which programs can set; they cannot set the inode's change time. */
async function versionOf(path: string): Promise<string | undefined> {
  const info = await stat(path, { bigint: true }).catch(() => undefined);
  return info && [path, info.dev, info.ino, info.size, info.mtimeNs, info.ctimeNs].join(" ");
}

async function keep(directory: string, path: string, text: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await removeAbandoned(directory);
  const draft = join(directory, transientName(randomUUID(), await currentOwner()));
  try {
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
