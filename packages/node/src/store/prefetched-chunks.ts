import { type FileHandle, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import { writeWhole } from "./write-whole.ts";

/** The contents of chunks that were downloaded before a load needs them. */
export class PrefetchedChunks implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #entries = new Map<string, { readonly position: number; readonly size: number }>();
  #endBytes = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Stores the chunks in an unlinked file, which disappears even if this process is killed. */
  static async open(directory: string): Promise<PrefetchedChunks> {
    const path = join(directory, `prefetched-${crypto.randomUUID()}`);
    const file = await open(path, "wx+", 0o600);
    await unlink(path);
    return new PrefetchedChunks(file);
  }

  has(hash: string): boolean {
    return this.#entries.has(hash);
  }

  async add(hash: string, content: Uint8Array): Promise<void> {
    const position = this.#endBytes;
    this.#endBytes += content.length;
    await writeWhole(this.#file, content, position);
    this.#entries.set(hash, { position, size: content.length });
  }

  /** Undefined if the chunk is not here, or has another size than the reader's manifest has for it. */
  async read(hash: string, size: number): Promise<Uint8Array | undefined> {
    const entry = this.#entries.get(hash);
    if (entry?.size !== size) return undefined;
    const content = Buffer.allocUnsafeSlow(entry.size);
    const { bytesRead } = await this.#file.read(content, 0, entry.size, entry.position);
    return bytesRead === entry.size ? content : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}
