const BLOCK_BYTES = 64 * 1024;
/** Pieces of at least this size are kept as they came; copying them would cost more than it saves. */
const LARGE_PIECE_BYTES = 16 * 1024;
const FEW_PIECES = 64;

/** Keeps bytes that arrive in pieces. Many tiny pieces share blocks, since each object costs far more than its bytes. */
export class ByteCollector {
  readonly #pieces: Uint8Array[] = [];
  #block = new Uint8Array(0);
  #used = 0;

  add(bytes: Uint8Array): void {
    if (this.#used + bytes.length > this.#block.length) {
      this.#seal();
      if (bytes.length >= LARGE_PIECE_BYTES || this.#pieces.length < FEW_PIECES) {
        this.#pieces.push(bytes);
        return;
      }
      this.#block = new Uint8Array(BLOCK_BYTES);
    }
    this.#block.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  /** Decodes everything as one text, so that a character may lie across two pieces. */
  text(): string {
    this.#seal();
    if (this.#pieces.length === 0) return "";
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let text = "";
    for (const piece of this.#pieces) text += decoder.decode(piece, { stream: true });
    return text + decoder.decode();
  }

  #seal(): void {
    if (this.#used > 0) this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = this.#block.subarray(this.#used);
    this.#used = 0;
  }
}
