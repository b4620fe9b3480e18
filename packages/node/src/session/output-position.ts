import type { OutputChunk } from "@sandpiper/core";

type TextSource = "stdout" | "stderr";

/** The beginning of a character whose other bytes have not been written yet. */
interface HeldBytes {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** How much of an execution's output has been turned into text. */
export interface OutputPosition {
  /** All bytes before it are sent, except the held ones. */
  readonly offset: number;
  readonly held: { readonly [Source in TextSource]?: HeldBytes | undefined };
}

/** Complete characters of one stream. */
export interface TextPiece {
  readonly source: TextSource;
  readonly text: string;
  readonly offset: number;
  /** Bytes before it that the journal dropped. */
  readonly dropped: number;
  /** The position after it. */
  readonly after: OutputPosition;
}

export interface ReadText {
  readonly pieces: readonly TextPiece[];
  readonly position: OutputPosition;
}

export const START: OutputPosition = { offset: 0, held: {} };

/** A decoder would drop a BOM at the start of each piece. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Decodes the next chunk. A character that is split between two chunks is held back until it is complete. */
export function readChunk(position: OutputPosition, chunk: OutputChunk): ReadText {
  const source: TextSource = chunk.source === "stderr" ? "stderr" : "stdout";
  const isGap = chunk.dropped > 0;
  const { pieces, position: start } = isGap ? readEnd(position) : { pieces: [], position };
  const held = start.held[source];
  const bytes = held === undefined ? chunk.bytes : Buffer.concat([held.bytes, chunk.bytes]);
  const at = held?.at ?? chunk.offset;
  const length = completeLength(bytes);
  const rest: HeldBytes = {
    at: chunk.offset + chunk.bytes.length - (bytes.length - length),
    bytes: bytes.slice(length),
  };
  // A held byte that no byte has followed stays where it is.
  const kept = length === 0 ? { ...rest, at } : rest;
  const after: OutputPosition = {
    offset: chunk.offset + chunk.bytes.length,
    held: { ...start.held, [source]: rest.bytes.length === 0 ? undefined : kept },
  };
  if (length === 0 && !isGap) return { pieces, position: after };
  const piece = { source, text: decoder.decode(bytes.subarray(0, length)), offset: at, dropped: chunk.dropped, after };
  return { pieces: [...pieces, piece], position: after };
}

/** Decodes what is held when no more bytes follow. */
export function readEnd({ offset, held }: OutputPosition): ReadText {
  const pieces: TextPiece[] = [];
  let position: OutputPosition = { offset, held };
  for (const source of ["stdout", "stderr"] as const) {
    const left = position.held[source];
    if (left === undefined) continue;
    position = { offset, held: { ...position.held, [source]: undefined } };
    pieces.push({ source, text: decoder.decode(left.bytes), offset: left.at, dropped: 0, after: position });
  }
  return { pieces, position };
}

/** The number of bytes before a character that is incomplete at the end. */
function completeLength(bytes: Uint8Array): number {
  for (let tail = 1; tail <= Math.min(3, bytes.length); tail++) {
    const byte = bytes[bytes.length - tail] as number;
    if (byte >= 0xc2 && byte <= 0xf4) {
      const wanted = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
      return wanted > tail ? bytes.length - tail : bytes.length;
    }
    if (byte < 0x80 || byte > 0xbf) return bytes.length;
  }
  return bytes.length;
}
