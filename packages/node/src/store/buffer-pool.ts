type Buffer = Uint8Array<ArrayBuffer>;

/** Enough for the next reader to begin at once. */
const KEPT_IDLE = 2;

/** Memory that is used again and again, and never more of it than was allowed: whoever wants more waits. */
export class BufferPool {
  readonly #bufferBytes: number;
  readonly #idle: Buffer[] = [];
  readonly #waiting: ((buffer: Buffer) => void)[] = [];
  #unmade: number;

  constructor(options: { readonly bufferBytes: number; readonly buffers: number }) {
    this.#bufferBytes = options.bufferBytes;
    this.#unmade = options.buffers;
  }

  async take(): Promise<Buffer> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#unmade > 0) {
      this.#unmade -= 1;
      return new Uint8Array(this.#bufferBytes);
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  give(buffer: Buffer): void {
    const next = this.#waiting.shift();
    if (next !== undefined) next(buffer);
    else if (this.#idle.length < KEPT_IDLE) this.#idle.push(buffer);
    else this.#unmade += 1;
  }
}
