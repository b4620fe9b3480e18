import type { CheckpointResource } from "@sandpiper/protocol";

export interface Retention {
  readonly kept: readonly CheckpointResource[];
  readonly dropped: readonly CheckpointResource[];
}

/** Which checkpoints stay, of a list with the oldest first: `counts` says which of them the number is about. */
export function keepLast(
  checkpoints: readonly CheckpointResource[],
  last: number,
  counts: (checkpoint: CheckpointResource) => boolean,
): Retention {
  const surplus = new Set(checkpoints.filter(counts).slice(0, -last));
  return {
    kept: checkpoints.filter((checkpoint) => !surplus.has(checkpoint)),
    dropped: [...surplus],
  };
}
