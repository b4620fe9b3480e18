import { open, readdir, rename, rm, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import {
  checkObjectSize,
  checkStoreKey,
  checkStorePrefix,
  type ObjectStore,
  type PutCondition,
  SandboxError,
  type StoredObject,
  type StoredObjectInfo,
} from "@sandpiper/core";
import type { ChunkStore } from "./chunk-store.ts";
import { DirectoryChunks } from "./directory-chunks.ts";
import { makeDurableDirectory, syncDirectory, unlinkExisting, writeNewFile } from "./durable-files.ts";
import { emptyIfAbsent, failedWith, fileError, ignoreAbsence } from "./file-error.ts";
import { createTag, currentPath, currentTag, dataPath, objectName, objectPath, STAGING } from "./object-layout.ts";
import { publishObject, stageObject } from "./stage-object.ts";

/** `current.<tag>` and `data.<tag>`; further entries belong to a write in progress or are leftovers of a writer that died. */
const MIN_ENTRIES = 2;
/** Longer than any write takes, including the clock skew between the machines that share a directory. */
const STALE_MS = 3_600_000;

const CHUNKS = "chunks";

/**
 * Stores objects in a directory that any number of processes and machines share. It needs no lock, which a dead process could hold.
 * An object is a directory with two files: `data.<tag>` holds the bytes, and the name of `current.<tag>` selects the version.
 * Replacing version A with B renames `current.A` to `current.B`: the file system lets one writer succeed, and no tag is used twice.
 * Creating an object renames a complete directory to a free name. Deleting one unlinks `current.A`.
 */
export class DirectoryStore implements ObjectStore {
  readonly label: string;
  /** In `chunks/`, which holds no objects. */
  readonly chunks: ChunkStore;
  readonly #root: string;
  #ready: Promise<void> | undefined;

  constructor(directory: string) {
    this.#root = resolve(directory);
    this.label = pathToFileURL(this.#root).href;
    this.chunks = new DirectoryChunks({
      label: this.label,
      directory: join(this.#root, CHUNKS),
      stagingDirectory: join(this.#root, STAGING),
      prepare: () => this.#prepare(),
      convert: (thrown) => fileError(thrown, this.label),
    });
  }

  get(key: string): Promise<StoredObject | undefined> {
    return this.#attempt(key, () =>
      this.#readVersion(key, async (tag, path) => {
        await using file = await open(dataPath(path, tag), "r");
        checkObjectSize({ key, tag, size: (await file.stat()).size }, this.label);
        const bytes = await file.readFile();
        return { key, size: bytes.length, tag, bytes };
      }),
    );
  }

  head(key: string): Promise<StoredObjectInfo | undefined> {
    return this.#attempt(key, () => this.#info(key));
  }

  put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    return this.#attempt(key, async () => {
      if (condition !== undefined && "ifMatch" in condition) return this.#swap(key, bytes, condition.ifMatch);
      for (;;) {
        const present = await this.#currentTag(key);
        if (present !== undefined && condition !== undefined) return undefined;
        const tag = present === undefined ? await this.#create(key, bytes) : await this.#swap(key, bytes, present);
        if (tag !== undefined) return tag;
      }
    });
  }

  delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    return this.#attempt(key, async () => {
      if (condition !== undefined) return this.#remove(key, condition.ifMatch);
      for (;;) {
        const present = await this.#currentTag(key);
        if (present === undefined || (await this.#remove(key, present))) return true;
      }
    });
  }

  async *list(prefix: string): AsyncIterable<StoredObjectInfo> {
    checkStorePrefix(prefix);
    const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1);
    try {
      yield* this.#walk(folder, prefix);
    } catch (thrown) {
      throw fileError(thrown, this.label);
    }
  }

  async *#walk(folder: string, prefix: string): AsyncIterable<StoredObjectInfo> {
    const names = await readdir(join(this.#root, folder)).catch(emptyIfAbsent);
    for (const name of names) {
      const object = objectName(name);
      const key = `${folder}${object ?? name}`;
      if (key === CHUNKS || name === STAGING || !(key.startsWith(prefix) || `${key}/`.startsWith(prefix))) continue;
      if (object === undefined) {
        yield* this.#walk(`${key}/`, prefix);
      } else {
        const info = await this.#info(key);
        if (info !== undefined) yield info;
      }
    }
  }

  #info(key: string): Promise<StoredObjectInfo | undefined> {
    return this.#readVersion(key, async (tag, path) => {
      const { size, mtime } = await stat(dataPath(path, tag));
      return { key, size, modifiedAt: mtime, tag };
    });
  }

  /** Reads the next version if a writer replaces the current one meanwhile. */
  async #readVersion<T>(key: string, read: (tag: string, path: string) => Promise<T>): Promise<T | undefined> {
    let missing: string | undefined;
    for (;;) {
      const tag = await this.#currentTag(key);
      if (tag === undefined) return undefined;
      try {
        return await read(tag, objectPath(this.#root, key));
      } catch (thrown) {
        if (!failedWith(thrown, "ENOENT")) throw thrown;
        // Writers delete data only after its version is replaced: a current version without data is damaged.
        if (missing === tag) throw this.#damaged(key);
        missing = tag;
      }
    }
  }

  async #currentTag(key: string): Promise<string | undefined> {
    const path = objectPath(this.#root, key);
    const names = await readdir(path).catch(emptyIfAbsent);
    const tag = currentTag(names);
    if (names.length > MIN_ENTRIES) {
      const inUse = [currentPath("", tag ?? ""), dataPath("", tag ?? "")];
      // Another process may be removing them as well.
      await removeStaleFiles(path, (name) => inUse.includes(name)).catch(() => {});
    }
    return tag;
  }

  async #create(key: string, bytes: Uint8Array): Promise<string | undefined> {
    await this.#prepare();
    const staged = await stageObject(this.#root, bytes);
    const path = objectPath(this.#root, key);
    try {
      await syncDirectory(staged.directory);
      if (!(await publishObject(staged, path))) return undefined;
      await syncDirectory(dirname(path));
      return staged.tag;
    } finally {
      await rm(staged.directory, { recursive: true, force: true });
    }
  }

  async #swap(key: string, bytes: Uint8Array, present: string): Promise<string | undefined> {
    const tag = createTag();
    const path = objectPath(this.#root, key);
    if (!isTag(present)) return undefined;
    try {
      await writeNewFile(dataPath(path, tag), [bytes]);
    } catch (thrown) {
      if (failedWith(thrown, "ENOENT")) return undefined;
      await rm(dataPath(path, tag), { force: true });
      throw thrown;
    }
    if (!(await this.#rename(currentPath(path, present), currentPath(path, tag)))) {
      await rm(dataPath(path, tag), { force: true });
      return undefined;
    }
    await syncDirectory(path).catch(ignoreAbsence);
    await unlink(dataPath(path, present)).catch(ignoreAbsence);
    return tag;
  }

  async #rename(from: string, to: string): Promise<boolean> {
    try {
      await rename(from, to);
      return true;
    } catch (thrown) {
      if (!failedWith(thrown, "ENOENT")) throw thrown;
      // A network file system repeats a rename whose response was lost. The target name is unique to this call.
      return await stat(to).then(
        () => true,
        () => false,
      );
    }
  }

  async #remove(key: string, present: string): Promise<boolean> {
    const path = objectPath(this.#root, key);
    if (!isTag(present) || !(await unlinkExisting(currentPath(path, present)))) return false;
    await unlink(dataPath(path, present)).catch(ignoreAbsence);
    try {
      await rmdir(path);
      await syncDirectory(dirname(path));
    } catch (thrown) {
      // Another process is writing here, or has created the object again.
      if (!failedWith(thrown, "ENOTEMPTY", "EEXIST", "ENOENT")) throw thrown;
      await syncDirectory(path).catch(ignoreAbsence);
    }
    return true;
  }

  /** Runs once, before the first write. */
  #prepare(): Promise<void> {
    this.#ready ??= this.#makeStaging().catch((thrown) => {
      this.#ready = undefined;
      throw thrown;
    });
    return this.#ready;
  }

  async #makeStaging(): Promise<void> {
    const staging = join(this.#root, STAGING);
    await makeDurableDirectory(staging);
    await removeStaleFiles(staging, () => false).catch(ignoreAbsence);
  }

  async #attempt<T>(key: string, work: () => Promise<T>): Promise<T> {
    checkStoreKey(key);
    try {
      return await work();
    } catch (thrown) {
      throw fileError(thrown, this.label);
    }
  }

  #damaged(key: string): SandboxError {
    return new SandboxError("object_damaged", {
      message: `object ${key} in the store ${this.label} is damaged: its data is missing`,
      details: { key },
    });
  }
}

/** Tags become parts of paths, so a tag of any other form must match nothing. */
function isTag(text: string): boolean {
  return /^[0-9a-f]{24}$/.test(text);
}

/** Removes leftovers of writers that died. */
async function removeStaleFiles(directory: string, isInUse: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(directory)) {
    if (isInUse(name)) continue;
    const path = join(directory, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > STALE_MS) await rm(path, { recursive: true, force: true });
  }
}
