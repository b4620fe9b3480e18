import { SandboxError } from "@sandpiper/core";
import { STDIN_WINDOW_BYTES } from "@sandpiper/protocol";

/** Each costs memory, however few bytes it has. */
const MAX_PIECES = 16_384;

export interface StdinPiece {
  /** Position of its first byte in all input. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  /** Nothing comes after it. */
  readonly isLast: boolean;
}

/** Input that waits for its process; at most a window of it. */
export class StdinQueue implements AsyncIterable<StdinPiece> {
  readonly #signal: AbortSignal;
  readonly #pieces: StdinPiece[] = [];
  #waitingBytes = 0;
  #isFinished = false;
  #wake: (() => void) | undefined;

  /** The signal ends the loop over it. */
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
      // Only now, when the reader asks for more, has it taken this one.
      this.#waitingBytes -= piece.bytes.length;
    }
  }

  #add(piece: StdinPiece): void {
    this.#pieces.push(piece);
    this.#wake?.();
  }
}

function afterEnd(): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "stdin_finished",
    message: "input was sent on a stream after its finish message",
    hint: "open a new stdin stream",
  });
}

function tooManyPieces(): SandboxError {
  return new SandboxError("resource_exhausted", {
    reason: "stdin_window_exceeded",
    message: `${MAX_PIECES} frames of input wait for the process; no more may`,
    hint: "send larger frames, or more when earlier ones are acknowledged",
    details: { maxFrames: MAX_PIECES },
  });
}

function windowExceeded(waitingBytes: number): SandboxError {
  return new SandboxError("resource_exhausted", {
    reason: "stdin_window_exceeded",
    message: `${waitingBytes} bytes of input wait for the process; at most ${STDIN_WINDOW_BYTES} may`,
    hint: "send more when earlier input is acknowledged",
    details: { waitingBytes, windowBytes: STDIN_WINDOW_BYTES },
  });
}
