import { readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeDirectory, makeDurableDirectory, writeNewFile } from "./durable-files.ts";
import { emptyIfAbsent, failedWith } from "./file-error.ts";
import { createTag, currentPath, currentTag, dataPath, STAGING } from "./object-layout.ts";

/** A new object that nobody sees yet. */
export interface StagedObject {
  readonly tag: string;
  readonly directory: string;
}

/** Its bytes are on the disk when this returns; its directory has to be synced before it is published. */
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

/** False: there is an object already. */
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
    // It can be this very one: a network file system sends a rename again when the first answer was lost.
    if (present !== undefined) return present === tag;
    // Left by a deletion that was cut short. Without a current version nobody can write here, and no name is used twice.
    for (const name of names) await rm(join(path, name), { force: true });
  }
}
