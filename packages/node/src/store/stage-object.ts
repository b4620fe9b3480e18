import { readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeDirectory, makeDurableDirectory, writeNewFile } from "./durable-files.ts";
import { emptyIfAbsent, failedWith } from "./file-error.ts";
import { createTag, currentPath, currentTag, dataPath, STAGING } from "./object-layout.ts";

/** A new object that readers do not see yet. */
export interface StagedObject {
  readonly tag: string;
  readonly directory: string;
}

/** Syncs the content of a new object. The caller must sync its directory before it publishes the object. */
export async function stageObject(root: string, bytes: Uint8Array): Promise<StagedObject> {
  const tag = createTag();
  const directory = join(root, STAGING, tag);
  await makeDirectory(directory);
  try {
    await writeNewFile(currentPath(directory, tag), []);
    await writeNewFile(dataPath(directory, tag), [bytes]);
  } catch (thrown) {
    await rm(directory, { recursive: true, force: true });
    throw thrown;
  }
  return { tag, directory };
}

/** False if the object already exists. */
export async function publishObject({ directory, tag }: StagedObject, path: string): Promise<boolean> {
  for (let hasParent = false; ; ) {
    try {
      await rename(directory, path);
      return true;
    } catch (thrown) {
      if (failedWith(thrown, "ENOENT") && !hasParent) {
        await makeDurableDirectory(dirname(path));
        hasParent = true;
        continue;
      }
      if (!failedWith(thrown, "ENOTEMPTY", "EEXIST")) throw thrown;
    }
    const names = await readdir(path).catch(emptyIfAbsent);
    const present = currentTag(names);
    // A network file system repeats a rename whose response was lost, so the existing object may be this one.
    if (present !== undefined) return present === tag;
    // Leftovers of an interrupted deletion. Removing them is safe: nothing writes to an object without a current version.
    for (const name of names) await rm(join(path, name), { force: true });
  }
}
