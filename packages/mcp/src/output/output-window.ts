import type { OutputChunk } from "@sandpiper/sdk";
import { joinBytes, textOf, withoutCutEnd, withoutCutStart } from "./utf8.ts";

/** The output between the head and the tail, which the answer leaves out. */
export interface LeftOut {
  readonly offset: number;
  readonly bytes: number;
}

interface Piece {
  readonly isStderr: boolean;
  readonly bytes: Uint8Array;
  readonly offset: number;
}

/**
 * Keeps the head and the tail of a process's output, half of the limit each, so that a model sees how it began and how it
 * ended.
 */
export class OutputWindow {
  readonly #sideBytes: number;
  readonly #head: Piece[] = [];
  readonly #tail: Piece[] = [];
  readonly #cut = new Set<"stdout" | "stderr">();
  #headBytes = 0;
  #tailBytes = 0;
  #endOffset: number;

  constructor(roomBytes: number, offset = 0) {
    this.#sideBytes = Math.ceil(roomBytes / 2);
    this.#endOffset = offset;
  }

  /** Offset of the next byte. */
  get endOffset(): number {
    return this.#endOffset;
  }

  add({ source, bytes, offset }: OutputChunk): void {
    this.#endOffset = offset + bytes.length;
    const isStderr = source === "stderr";
    const room = this.#tailBytes > 0 ? 0 : this.#sideBytes - this.#headBytes;
    const taken = bytes.subarray(0, room);
    if (taken.length > 0) this.#head.push({ isStderr, bytes: taken, offset });
    this.#headBytes += taken.length;
    const rest = bytes.subarray(taken.length);
    if (rest.length === 0) return;
    this.#tail.push({ isStderr, bytes: rest, offset: offset + taken.length });
    this.#tailBytes += rest.length;
    this.#drop();
  }

  /** The gap between head and tail, in whole characters; undefined if there is none. */
  get leftOut(): LeftOut | undefined {
    const [first] = this.#tail;
    const last = this.#head.at(-1);
    if (first === undefined || last === undefined || this.#cut.size === 0) return undefined;
    const offset = last.offset + withoutCutEnd(last.bytes).length;
    const end = first.offset + first.bytes.length - withoutCutStart(first.bytes).length;
    return { offset, bytes: end - offset };
  }

  /** The text of one source, or of all in the order of arrival; `marker` replaces the gap. */
  text({ marker, source }: { readonly marker: string; readonly source?: "stdout" | "stderr" | undefined }): string {
    const head = bytesOf(this.#head, source);
    const tail = bytesOf(this.#tail, source);
    const isCut = source === undefined ? this.#cut.size > 0 : this.#cut.has(source);
    if (!isCut) return textOf(joinBytes([head, tail]));
    return `${textOf(withoutCutEnd(head))}${marker}${textOf(withoutCutStart(tail))}`;
  }

  #drop(): void {
    let excess = this.#tailBytes - this.#sideBytes;
    while (excess > 0) {
      const [first] = this.#tail;
      if (first === undefined) return;
      this.#cut.add(first.isStderr ? "stderr" : "stdout");
      const dropped = Math.min(excess, first.bytes.length);
      if (dropped === first.bytes.length) this.#tail.shift();
      else this.#tail[0] = { ...first, bytes: first.bytes.subarray(dropped), offset: first.offset + dropped };
      this.#tailBytes -= dropped;
      excess -= dropped;
    }
  }
}

function bytesOf(pieces: readonly Piece[], source: "stdout" | "stderr" | undefined): Uint8Array {
  const wanted = pieces.filter(({ isStderr }) => source === undefined || isStderr === (source === "stderr"));
  return joinBytes(wanted.map(({ bytes }) => bytes));
}
