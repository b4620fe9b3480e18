import { SandboxError } from "../errors/sandbox-error.ts";
import { MAX_ATTACHMENT_BYTES, MAX_LINE_BYTES } from "./generation.ts";

/**
 * A frame is one line of JSON, followed by N raw bytes and a newline if the line has `"bytes": N`. Empty lines between
 * frames are ignored. The newline after the bytes distinguishes a complete attachment from an unfinished one (see
 * `resyncPadding`).
 */
export interface Frame {
  readonly message: Record<string, unknown>;
  readonly attachment: Uint8Array | undefined;
}

export type FrameFault = "not_json" | "not_an_object" | "line_too_long" | "bad_attachment_size" | "torn_attachment";

export interface FrameSink {
  /** Memory of that size for the attachment of this message; undefined for new memory. */
  place?(message: Readonly<Record<string, unknown>>, size: number): Uint8Array | undefined;
  frame(frame: Frame): void;
  /** After a fault the decoder skips the damaged frame and continues. */
  fault(fault: FrameFault): void;
}

const NEWLINE = 0x0a;
const SPACE = 0x20;
const newline = Uint8Array.of(NEWLINE);
const nothing = new Uint8Array(0);
/** JSON escapes a surrogate only where the other half is missing; an even number of backslashes before it are text. */
const HALF_CHARACTER = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;
const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder("utf-8", { fatal: true });

/** The pieces of one frame, in order; written together. The message gets its `bytes` here. */
export function encodeFrame(message: object, attachment?: Uint8Array): Uint8Array[] {
  if (attachment === undefined) return [encodeLine(message)];
  if (attachment.length > MAX_ATTACHMENT_BYTES) {
    throw new RangeError(`the attachment has ${attachment.length} bytes; at most ${MAX_ATTACHMENT_BYTES} are allowed`);
  }
  return [encodeLine({ ...message, bytes: attachment.length }), attachment, newline];
}

/** The agent refuses half characters, and its error could not name the message. */
function encodeLine(message: object): Uint8Array {
  const text = JSON.stringify(message);
  if (text.includes("\\ud") && HALF_CHARACTER.test(text)) {
    throw new SandboxError("malformed_text", {
      message: "a string cannot be sent to the sandbox: it contains one half of a surrogate pair",
    });
  }
  return textEncoder.encode(`${text}\n`);
}

/**
 * The first bytes of a new caller on a byte stream whose earlier caller may have died within a frame. The spaces end an
 * unfinished attachment without the newline that would complete it, and an unfinished line as invalid JSON. The second
 * half does the same for a line that lacked only its newline and its attachment.
 */
export function resyncPadding(): Uint8Array {
  const half = MAX_ATTACHMENT_BYTES + 1;
  const padding = new Uint8Array(2 * half + 2).fill(SPACE);
  padding[half] = NEWLINE;
  padding[2 * half + 1] = NEWLINE;
  return padding;
}

/** Turns chunks of a byte stream back into frames. */
export class FrameDecoder {
  readonly #sink: FrameSink;
  /** The start of a line from earlier chunks, in one buffer because a line may arrive byte by byte. */
  #line = new Uint8Array(0);
  #lineLength = 0;
  #skippingLine = false;
  #message: Record<string, unknown> | undefined;
  #attachmentLength = 0;
  #attachment: Uint8Array = nothing;
  #filled = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) at = this.step(chunk, at);
  }

  /** Whether the next bytes are those of an attachment. */
  get isInAttachment(): boolean {
    return this.#message !== undefined;
  }

  /** Takes at most one line or attachment from the chunk, and returns where the rest starts. */
  step(chunk: Uint8Array, at: number): number {
    return this.#message === undefined ? this.#takeLine(chunk, at) : this.#takeAttachment(chunk, at);
  }

  #takeLine(chunk: Uint8Array, at: number): number {
    const end = chunk.indexOf(NEWLINE, at);
    const piece = chunk.subarray(at, end === -1 ? chunk.length : end);
    if (!this.#skippingLine && this.#lineLength + piece.length > MAX_LINE_BYTES) {
      this.#skippingLine = true;
      this.#dropLine();
      this.#sink.fault("line_too_long");
    }
    if (end === -1) {
      if (!this.#skippingLine) this.#keep(piece);
      return chunk.length;
    }
    if (this.#skippingLine) this.#skippingLine = false;
    else this.#endLine(piece);
    return end + 1;
  }

  /** The chunk may be a reused buffer, so bytes that outlive the call are copied. */
  #keep(piece: Uint8Array): void {
    const needed = this.#lineLength + piece.length;
    if (needed > this.#line.length) {
      const larger = new Uint8Array(Math.max(needed, Math.min(2 * this.#line.length, MAX_LINE_BYTES)));
      larger.set(this.#line.subarray(0, this.#lineLength));
      this.#line = larger;
    }
    this.#line.set(piece, this.#lineLength);
    this.#lineLength = needed;
  }

  #dropLine(): void {
    this.#line = new Uint8Array(0);
    this.#lineLength = 0;
  }

  #endLine(piece: Uint8Array): void {
    let line = piece;
    if (this.#lineLength > 0) {
      this.#keep(piece);
      line = this.#line.subarray(0, this.#lineLength);
      this.#dropLine();
    }
    let message: unknown;
    try {
      const text = textDecoder.decode(line);
      if (text.trim() === "") return;
      message = JSON.parse(text);
    } catch {
      this.#sink.fault("not_json");
      return;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      this.#sink.fault("not_an_object");
      return;
    }
    this.#begin(message as Record<string, unknown>);
  }

  #begin(message: Record<string, unknown>): void {
    const size = message["bytes"];
    if (size === undefined) {
      this.#sink.frame({ message, attachment: undefined });
    } else if (typeof size !== "number" || !Number.isInteger(size) || size < 0 || size > MAX_ATTACHMENT_BYTES) {
      this.#sink.fault("bad_attachment_size");
    } else {
      this.#message = message;
      this.#attachmentLength = size;
      this.#filled = 0;
    }
  }

  #takeAttachment(chunk: Uint8Array, at: number): number {
    const message = this.#message as Record<string, unknown>;
    const missing = this.#attachmentLength - this.#filled;
    if (missing > 0) {
      const piece = chunk.subarray(at, at + missing);
      if (this.#filled === 0) this.#startAttachment(message, piece);
      else this.#attachment.set(piece, this.#filled);
      this.#filled += piece.length;
      return at + piece.length;
    }
    const attachment = this.#attachment;
    this.#message = undefined;
    this.#attachment = nothing;
    if (chunk[at] !== NEWLINE) {
      this.#sink.fault("torn_attachment");
      return at;
    }
    this.#sink.frame({ message, attachment });
    return at + 1;
  }

  #startAttachment(message: Record<string, unknown>, piece: Uint8Array): void {
    const size = this.#attachmentLength;
    const place = this.#sink.place?.(message, size);
    // A copy of existing bytes need not be filled with zeros first.
    if (place === undefined && piece.length === size) {
      this.#attachment = new Uint8Array(piece);
      return;
    }
    this.#attachment = place ?? new Uint8Array(size);
    this.#attachment.set(piece);
  }
}
