/** A file of a checkpoint, as its manifest lists it. */
export interface CheckpointFile {
  readonly name: string;
  readonly size: number;
  readonly chunks: readonly CheckpointPiece[];
}

/** A chunk, or a run of zero bytes, which is not stored. */
export type CheckpointPiece = { readonly hash: string; readonly size: number } | { readonly zero: number };

/** The hashes of all chunks of these files. */
export function* hashesOf(files: readonly CheckpointFile[]): Iterable<string> {
  for (const { chunks } of files) for (const piece of chunks) if ("hash" in piece) yield piece.hash;
}
