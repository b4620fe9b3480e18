/** Small enough that several fit into what may wait for a process that does not read. */
const PIECE_BYTES = 256 * 1024;

/** Input cut into what one message carries. */
export function* stdinPieces(input: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < input.length; at += PIECE_BYTES) yield input.subarray(at, at + PIECE_BYTES);
}
