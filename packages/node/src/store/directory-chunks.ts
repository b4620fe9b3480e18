import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type ChunkSession, type ChunkStore, chunkFolder, type StoredChunk } from "./chunk-store.ts";
import { DirectoryChunkSession, type DirectoryChunksOptions } from "./directory-chunk-session.ts";
import { unlinkExisting } from "./durable-files.ts";
import { emptyIfAbsent, ignoreAbsence } from "./file-error.ts";

const FILE_NAME = /^([0-9a-f]{64})\.([0-9a-f]{24})$/;

/**
 * Stores chunks as plain files, `<first two digits>/<hash>.<tag>`, at half the cost of an object. Each write has a unique name,
 * so deleting by tag is an unlink. Several files may hold the same chunk.
 */
export class DirectoryChunks implements ChunkStore {
  readonly #options: DirectoryChunksOptions;

  constructor(options: DirectoryChunksOptions) {
    this.#options = options;
  }

  openSession(): ChunkSession {
    return new DirectoryChunkSession(this.#options);
  }

  async *list(): AsyncIterable<StoredChunk> {
    try {
      for (const folder of await readdir(this.#options.directory).catch(emptyIfAbsent)) {
        for (const name of await readdir(join(this.#options.directory, folder)).catch(emptyIfAbsent)) {
          const chunk = await this.#read(folder, name);
          if (chunk !== undefined) yield chunk;
        }
      }
    } catch (thrown) {
      throw this.#options.convert(thrown);
    }
  }

  async delete({ hash, tag }: StoredChunk): Promise<boolean> {
    try {
      return await unlinkExisting(join(this.#options.directory, chunkFolder(hash), `${hash}.${tag}`));
    } catch (thrown) {
      throw this.#options.convert(thrown);
    }
  }

  async #read(folder: string, name: string): Promise<StoredChunk | undefined> {
    const [, hash, tag] = FILE_NAME.exec(name) ?? [];
    if (hash === undefined || tag === undefined) return undefined;
    const stats = await stat(join(this.#options.directory, folder, name)).catch(ignoreAbsence);
    return stats && { hash, tag, modifiedAt: stats.mtime };
  }
}
