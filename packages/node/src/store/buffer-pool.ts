type Buffer = Uint8Array<ArrayBuffer>;

/** Enough for the next reader to begin at once. */
const MAX_IDLE = 2;

/** A fixed number of reusable buffers. `take` waits while all of them are in use. */
export class BufferPool {
  readonly #bufferBytes: number;
  readonly #idle: Buffer[] = [];
  readonly #waiting: ((buffer: Buffer) => void)[] = [];
  #unallocated: number;

  constructor(options: { readonly bufferBytes: number; readonly buffers: number }) {
    this.#bufferBytes = options.bufferBytes;
    this.#unallocated = options.buffers;
  }

  async take(): Promise<Buffer> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#unallocated > 0) {
      this.#unallocated -= 1;
      return new Uint8Array(this.#bufferBytes);
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  give(buffer: Buffer): void {
    const next = this.#waiting.shift();
    if (next !== undefined) next(buffer);
    else if (this.#idle.length < MAX_IDLE) this.#idle.push(buffer);
    else this.#unallocated += 1;
  }
}
