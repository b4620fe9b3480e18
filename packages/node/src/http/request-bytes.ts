import { UPLOAD_PIECE_BYTES } from "@sandpiper/core";
import type { Call } from "./call.ts";
import { bodyTooLarge, callerLeft, lengthOf } from "./read-body.ts";

export interface RequestBytesOptions {
  /** A larger body is refused; with a Content-Length, before it is read. */
  readonly limitBytes: number;
}

/** Streams a request's body with back-pressure, in pieces of the best size for an upload to the agent. */
export function requestBytes(
  call: Pick<Call, "request" | "bindings" | "deps">,
  options: RequestBytesOptions,
): AsyncIterable<Uint8Array> {
  return inPieces(requestStream(call, options));
}

/** The body as it arrives, for a reader that wants each part at once. It may take any time while it makes progress. */
export function requestStream(
  call: Pick<Call, "request" | "bindings" | "deps">,
  { limitBytes }: RequestBytesOptions,
): AsyncIterable<Uint8Array> {
  const length = lengthOf(call.request);
  if (length !== undefined && length > limitBytes) throw bodyTooLarge(limitBytes);
  return within(call.deps.bodies.whileProgressing(arrivingBytes(call)), limitBytes);
}

/** Reads directly from the connection if there is one, without a buffer in between. */
async function* arrivingBytes({ request, bindings }: Pick<Call, "request" | "bindings">): AsyncGenerator<Uint8Array> {
  const { incoming } = bindings;
  if (incoming === undefined) {
    yield* request.body ?? [];
    return;
  }
  try {
    // The connection must stay open for the answer when the reader stops early.
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

/** Each piece is newly allocated, so the consumer may keep it. */
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
