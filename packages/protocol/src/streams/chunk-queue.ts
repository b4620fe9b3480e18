import type { OutputSource, StreamChunk } from "./output-chunk.ts";

/** Below this many waiting chunks a queue of plain objects is the fastest. */
const PACK_AFTER_CHUNKS = 64;
const PACKED_CHUNK_BYTES = 1024;
const COMPACT_AFTER_CHUNKS = 1024;
const PACK_BYTES = 64 * 1024;

/**
 * Chunks that wait for a slow reader. Small ones share a buffer: a stream may consist of single bytes, and one object
 * for each would use hundreds of times the memory of the stream's window.
 */
export class ChunkQueue<Source = OutputSource | undefined> {
  readonly #entries: (StreamChunk<Source> | Pack<Source>)[] = [];
  #head = 0;

  push(chunk: StreamChunk<Source>): void {
    if (chunk.bytes.length <= PACKED_CHUNK_BYTES && this.#entries.length - this.#head >= PACK_AFTER_CHUNKS) {
      const last = this.#entries.at(-1);
      if (last instanceof Pack && last.add(chunk)) return;
      const pack = new Pack<Source>(chunk.offset - chunk.dropped);
      pack.add(chunk);
      this.#entries.push(pack);
    } else {
      this.#entries.push(chunk);
    }
  }

  shift(): StreamChunk<Source> | undefined {
    const entry = this.#entries[this.#head];
    if (entry === undefined) return undefined;
    if (entry instanceof Pack) {
      const chunk = entry.take();
      if (entry.isEmpty) this.#drop();
      return chunk;
    }
    this.#drop();
    return entry;
  }

  clear(): void {
    this.#entries.length = 0;
    this.#head = 0;
  }

  #drop(): void {
    this.#head++;
    if (this.#head === this.#entries.length) this.clear();
    else if (this.#head >= COMPACT_AFTER_CHUNKS) {
      this.#entries.splice(0, this.#head);
      this.#head = 0;
    }
  }
}

/** Small chunks that follow one another, in one buffer. */
class Pack<Source> {
  readonly #bytes = new Uint8Array(PACK_BYTES);
  #used = 0;
  readonly #ends: number[] = [];
  readonly #sources: Source[] = [];
  readonly #dropped: number[] = [];
  #taken = 0;
  #nextOffset: number;

  constructor(firstOffset: number) {
    this.#nextOffset = firstOffset;
  }

  get isEmpty(): boolean {
    return this.#taken === this.#ends.length;
  }

  add(chunk: StreamChunk<Source>): boolean {
    if (this.#used + chunk.bytes.length > PACK_BYTES) return false;
    this.#bytes.set(chunk.bytes, this.#used);
    this.#used += chunk.bytes.length;
    const last = this.#ends.length - 1;
    if (last >= this.#taken && chunk.dropped === 0 && this.#sources[last] === chunk.source) {
      this.#ends[last] = this.#used;
    } else {
      this.#ends.push(this.#used);
      this.#sources.push(chunk.source);
      this.#dropped.push(chunk.dropped);
    }
    return true;
  }

  take(): StreamChunk<Source> {
    const at = this.#taken++;
    const start = at === 0 ? 0 : (this.#ends[at - 1] as number);
    const bytes = this.#bytes.subarray(start, this.#ends[at]);
    const dropped = this.#dropped[at] as number;
    const offset = this.#nextOffset + dropped;
    this.#nextOffset = offset + bytes.length;
    return { bytes, offset, source: this.#sources[at] as Source, dropped };
  }
}
