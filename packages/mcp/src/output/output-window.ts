import type { OutputChunk } from "@sandpiper/sdk";
import { joinBytes, textOf, withoutCutEnd, withoutCutStart } from "./utf8.ts";

/** Output between the beginning and the end that an answer does not carry. */
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
 * Keeps the beginning and the end of a process's output, whatever its length: a model sees how it began and what it came
 * to. Each side gets half of the room.
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

  /** What lies between both sides, whole characters; undefined where nothing does. */
  get leftOut(): LeftOut | undefined {
    const [first] = this.#tail;
    const last = this.#head.at(-1);
    if (first === undefined || last === undefined || this.#cut.size === 0) return undefined;
    const offset = last.offset + withoutCutEnd(last.bytes).length;
    const end = first.offset + first.bytes.length - withoutCutStart(first.bytes).length;
    return { offset, bytes: end - offset };
  }

  /** One source, or all of them in the order in which they were written; `marker` stands for what is left out of it. */
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
