import { SandboxError } from "@sandpiper/core";
import { STDIN_WINDOW_BYTES } from "@sandpiper/protocol";

/** Each piece costs memory, even without bytes. */
const MAX_PIECES = 16_384;

export interface StdinPiece {
  /** Position of its first byte in the input. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

/** Input that waits for its process, up to one window. */
export class StdinQueue implements AsyncIterable<StdinPiece> {
  readonly #signal: AbortSignal;
  readonly #pieces: StdinPiece[] = [];
  #waitingBytes = 0;
  #isFinished = false;
  #wake: (() => void) | undefined;

  /** The signal ends the iteration. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wake?.(), { once: true });
  }

  push(offset: number, bytes: Uint8Array): void {
    if (this.#isFinished) throw afterEnd();
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > STDIN_WINDOW_BYTES) throw windowExceeded(this.#waitingBytes);
    if (this.#pieces.length >= MAX_PIECES) throw tooManyPieces();
    this.#add({ offset, bytes, isLast: false });
  }

  finish(offset: number): void {
    if (this.#isFinished) throw afterEnd();
    this.#isFinished = true;
    this.#add({ offset, bytes: new Uint8Array(), isLast: true });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StdinPiece, void, undefined> {
    while (!this.#signal.aborted) {
      const piece = this.#pieces.shift();
      if (piece === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      yield piece;
      // The reader has processed the piece when it asks for the next one.
      this.#waitingBytes -= piece.bytes.length;
    }
  }

  #add(piece: StdinPiece): void {
    this.#pieces.push(piece);
    this.#wake?.();
  }
}

function afterEnd(): SandboxError {
  return new SandboxError("stdin_finished", { message: "input was sent on a stream after its finish message" });
}

function tooManyPieces(): SandboxError {
  return new SandboxError("stdin_window_exceeded", {
    message: `the maximum of ${MAX_PIECES} input frames already waits for the process`,
    hint: "send larger frames, or wait until earlier ones are acknowledged",
    details: { maxFrames: MAX_PIECES },
  });
}

function windowExceeded(waitingBytes: number): SandboxError {
  return new SandboxError("stdin_window_exceeded", {
    message: `${waitingBytes} bytes of input wait for the process; the maximum is ${STDIN_WINDOW_BYTES}`,
    hint: "wait until earlier input is acknowledged",
    details: { waitingBytes, windowBytes: STDIN_WINDOW_BYTES },
  });
}
