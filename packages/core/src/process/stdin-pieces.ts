/** Small enough that several fit into the agent's limit for unread input. */
const PIECE_BYTES = 256 * 1024;

/** Splits input into messages. */
export function* stdinPieces(input: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < input.length; at += PIECE_BYTES) yield input.subarray(at, at + PIECE_BYTES);
}
