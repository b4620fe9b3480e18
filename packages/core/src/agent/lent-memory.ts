import { MAX_ATTACHMENT_BYTES } from "@sandpiper/protocol";

/** Smaller chunks do not justify a buffer of the full size. */
const MIN_BYTES = 64 * 1024;

/**
 * Buffers for the chunks of one stream, reused when the reader is done with a chunk. New memory for each chunk would cost
 * more than the copy: the kernel clears it, and the garbage collector runs every few dozen megabytes.
 */
export class LentMemory {
  readonly #bufferBytes: number;
  readonly #mostBuffers: number;
  readonly #free: Uint8Array[] = [];
  readonly #lent = new Map<Uint8Array, Uint8Array>();
  #made = 0;
  #offer: { readonly piece: Uint8Array; readonly buffer: Uint8Array } | undefined;

  /** `bufferBytes` is the size of the largest chunk that gets a buffer. */
  constructor(windowBytes: number, bufferBytes: number = MAX_ATTACHMENT_BYTES) {
    this.#bufferBytes = bufferBytes;
    this.#mostBuffers = Math.ceil(windowBytes / bufferBytes) + 1;
  }

  /** Memory for the next chunk, or undefined. An offer that was not taken is repeated. */
  offer(size: number): Uint8Array | undefined {
    const isFit = MIN_BYTES <= size && size <= this.#bufferBytes;
    const buffer = isFit ? (this.#offer?.buffer ?? this.#free.pop() ?? this.#make()) : undefined;
    if (buffer === undefined) return undefined;
    const piece = buffer.subarray(0, size);
    this.#offer = { piece, buffer };
    return piece;
  }

  /** The chunk has arrived; the reader holds it until it is returned. */
  take(piece: Uint8Array): void {
    if (this.#offer?.piece !== piece) return;
    this.#lent.set(piece, this.#offer.buffer);
    this.#offer = undefined;
  }

  giveBack(piece: Uint8Array): void {
    const buffer = this.#lent.get(piece);
    if (buffer === undefined) return;
    this.#lent.delete(piece);
    this.#free.push(buffer);
  }

  #make(): Uint8Array | undefined {
    if (this.#made === this.#mostBuffers) return undefined;
    this.#made++;
    return new Uint8Array(this.#bufferBytes);
  }
}
