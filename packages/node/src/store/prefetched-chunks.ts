import { type FileHandle, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import { writeWhole } from "./write-whole.ts";

/** Contents of chunks that were brought here before it was known which of them a load needs. */
export class PrefetchedChunks implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #places = new Map<string, { readonly position: number; readonly size: number }>();
  #endBytes = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** In a file without a name, of which nothing is left, however this program ends. */
  static async open(directory: string): Promise<PrefetchedChunks> {
    const path = join(directory, `prefetched-${crypto.randomUUID()}`);
    const file = await open(path, "wx+", 0o600);
    await unlink(path);
    return new PrefetchedChunks(file);
  }

  has(hash: string): boolean {
    return this.#places.has(hash);
  }

  async add(hash: string, content: Uint8Array): Promise<void> {
    const position = this.#endBytes;
    this.#endBytes += content.length;
    await writeWhole(this.#file, content, position);
    this.#places.set(hash, { position, size: content.length });
  }

  async read(hash: string): Promise<Uint8Array | undefined> {
    const place = this.#places.get(hash);
    if (place === undefined) return undefined;
    const content = Buffer.allocUnsafeSlow(place.size);
    const { bytesRead } = await this.#file.read(content, 0, place.size, place.position);
    return bytesRead === place.size ? content : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}
