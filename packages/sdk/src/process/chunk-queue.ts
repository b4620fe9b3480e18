import type { OutputChunk } from "./output-chunk.ts";

const SMALL_BYTES = 4 * 1024;
const BLOCK_BYTES = 64 * 1024;
const COMPACT_AFTER = 1024;

/**
 * Chunks that wait for a slow reader. Small neighbours are joined: a stream may consist of single bytes, and an object for
 * each would hold hundreds of times the memory that the stream's window promises.
 */
export class ChunkQueue {
  #chunks: OutputChunk[] = [];
  #head = 0;
  /** What is behind the last chunk when it is one that was joined. */
  #block: Uint8Array | undefined;

  push(chunk: OutputChunk): void {
    const last = this.#chunks.length > this.#head ? this.#chunks.at(-1) : undefined;
    if (last !== undefined && this.#join(last, chunk)) return;
    this.#block = undefined;
    this.#chunks.push(chunk);
  }

  shift(): OutputChunk | undefined {
    const chunk = this.#chunks[this.#head];
    if (chunk === undefined) return undefined;
    this.#head++;
    if (this.#head === this.#chunks.length) {
      this.#chunks = [];
      this.#head = 0;
      this.#block = undefined;
    } else if (this.#head >= COMPACT_AFTER) {
      this.#chunks = this.#chunks.slice(this.#head);
      this.#head = 0;
    }
    return chunk;
  }

  #join(last: OutputChunk, { source, bytes, dropped }: OutputChunk): boolean {
    const joined = last.bytes.length + bytes.length;
    if (source !== last.source || dropped > 0 || bytes.length > SMALL_BYTES || joined > BLOCK_BYTES) return false;
    if (this.#block === undefined) {
      if (last.bytes.length > SMALL_BYTES) return false;
      this.#block = new Uint8Array(BLOCK_BYTES);
      this.#block.set(last.bytes);
    }
    this.#block.set(bytes, last.bytes.length);
    this.#chunks[this.#chunks.length - 1] = { ...last, bytes: this.#block.subarray(0, joined) };
    return true;
  }
}
