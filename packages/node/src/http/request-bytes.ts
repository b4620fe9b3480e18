import { UPLOAD_PIECE_BYTES } from "@sandpiper/core";
import type { Call } from "./call.ts";
import { bodyTooLarge, callerLeft, lengthOf } from "./read-body.ts";

export interface RequestBytesOptions {
  /** More than that is refused, before anything is read where the length is said beforehand. */
  readonly limitBytes: number;
}

/** A request's body at the pace of whoever reads it, in pieces of the size that travels best. */
export function requestBytes(
  call: Pick<Call, "request" | "bindings">,
  { limitBytes }: RequestBytesOptions,
): AsyncIterable<Uint8Array> {
  const length = lengthOf(call.request);
  if (length !== undefined && length > limitBytes) throw bodyTooLarge(limitBytes);
  return inPieces(within(arrivingBytes(call), limitBytes));
}

/** Straight from the connection where there is one: nothing in between that could buffer. */
async function* arrivingBytes({ request, bindings }: Pick<Call, "request" | "bindings">): AsyncGenerator<Uint8Array> {
  const { incoming } = bindings;
  if (incoming === undefined) {
    yield* request.body ?? [];
    return;
  }
  try {
    // When the reader gives up, the connection has to live on for the answer.
    yield* incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
  } catch (thrown) {
    throw callerLeft(thrown);
  }
  if (!incoming.complete) throw callerLeft();
}

async function* within(source: AsyncIterable<Uint8Array>, limitBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const bytes of source) {
    size += bytes.length;
    if (size > limitBytes) throw bodyTooLarge(limitBytes);
    yield bytes;
  }
}

/** Every piece is new memory: whoever takes it may keep it. */
export async function* inPieces(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let piece: Buffer | undefined;
  let filled = 0;
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; ) {
      piece ??= Buffer.allocUnsafeSlow(UPLOAD_PIECE_BYTES);
      const part = bytes.subarray(at, at + piece.length - filled);
      piece.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled === piece.length) {
        yield piece;
        [piece, filled] = [undefined, 0];
      }
    }
  }
  if (piece !== undefined) yield piece.subarray(0, filled);
}
