/** A file of a checkpoint, as its manifest lists it. */
export interface CheckpointFile {
  readonly name: string;
  readonly size: number;
  readonly chunks: readonly CheckpointPiece[];
}

/** A chunk, or so many zero bytes that are nowhere stored. */
export type CheckpointPiece = { readonly hash: string; readonly size: number } | { readonly zero: number };

/** Hashes of all chunks that these files are made of. */
export function* hashesOf(files: readonly CheckpointFile[]): Iterable<string> {
  for (const { chunks } of files) for (const piece of chunks) if ("hash" in piece) yield piece.hash;
}
