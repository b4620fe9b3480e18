/** Chunks of at least this size are kept as they came; copying them would cost more than it saves. */
const LARGE_CHUNK_BYTES = 16 * 1024;
const FEW_CHUNKS = 64;
const BLOCK_BYTES = 64 * 1024;

/** Keeps bytes that arrive in pieces. Many tiny pieces share blocks, since each object costs far more than its bytes. */
export class ByteCollector {
  readonly #pieces: Uint8Array[] = [];
  #free: Uint8Array;
  #used = 0;
  #byteLength = 0;

  /** Expected bytes are stored in one buffer as they arrive, which avoids a copy at the end. */
  constructor(expectedBytes = 0) {
    this.#free = new Uint8Array(expectedBytes);
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  add(bytes: Uint8Array): void {
    this.#byteLength += bytes.length;
    if (this.#used + bytes.length > this.#free.length) {
      this.#seal();
      if (bytes.length >= LARGE_CHUNK_BYTES || this.#pieces.length < FEW_CHUNKS) {
        this.#pieces.push(bytes);
        return;
      }
      this.#free = new Uint8Array(BLOCK_BYTES);
    }
    this.#free.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  bytes(): Uint8Array {
    this.#seal();
    const [first] = this.#pieces;
    if (first !== undefined && this.#pieces.length === 1) return first;
    const whole = new Uint8Array(this.#byteLength);
    let at = 0;
    for (const piece of this.#pieces) {
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  }

  /** Decodes everything as one string, so that a character may span two pieces. */
  text(): string {
    this.#seal();
    if (this.#byteLength === 0) return "";
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let text = "";
    for (const piece of this.#pieces) text += decoder.decode(piece, { stream: true });
    return text + decoder.decode();
  }

  #seal(): void {
    if (this.#used === 0) return;
    this.#pieces.push(this.#free.subarray(0, this.#used));
    this.#free = this.#free.subarray(this.#used);
    this.#used = 0;
  }
}
