/** One byte of kind, three unused, four of length. */
const HEADER_BYTES = 8;
const LAST_KIND = 2;

/** Removes the header that an engine puts before each piece of a container's output; does not copy the data. */
export class FrameStripper {
  readonly #header = Buffer.alloc(HEADER_BYTES);
  readonly #receive: (kind: number, bytes: Uint8Array) => void;
  #headerBytes = 0;
  #restBytes = 0;

  constructor(receive: (kind: number, bytes: Uint8Array) => void) {
    this.#receive = receive;
  }

  /** Returns false if the data has no such headers. */
  push(chunk: Uint8Array): boolean {
    let at = 0;
    while (at < chunk.length) {
      if (this.#restBytes === 0) {
        const taken = chunk.subarray(at, at + HEADER_BYTES - this.#headerBytes);
        this.#header.set(taken, this.#headerBytes);
        this.#headerBytes += taken.length;
        at += taken.length;
        if (this.#headerBytes < HEADER_BYTES) return true;
        if (this.#kind > LAST_KIND) return false;
        this.#headerBytes = 0;
        this.#restBytes = this.#header.readUInt32BE(4);
        continue;
      }
      const bytes = chunk.subarray(at, at + this.#restBytes);
      at += bytes.length;
      this.#restBytes -= bytes.length;
      this.#receive(this.#kind, bytes);
    }
    return true;
  }

  get #kind(): number {
    return this.#header.readUInt8(0);
  }
}
