import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { currentOwner } from "./process-owner.ts";
import { removeAbandoned, transientName } from "./transient-name.ts";

export interface RememberedOptions {
  /** Where it is kept for the next program. */
  readonly directory: string;
  /** What is computed, and how; another text is another fact. */
  readonly fact: string;
  readonly files: readonly string[];
}

/**
 * What follows from files alone and takes a moment to find out: computed again when one of them is another, or was written to.
 * An empty answer is none, and is not kept.
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

/** Not by its time alone, which programs set as they like; the kernel's own mark of a change they cannot. */
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
