import type { CheckpointResource } from "@sandpiper/protocol";

export interface Retention {
  readonly kept: readonly CheckpointResource[];
  readonly dropped: readonly CheckpointResource[];
}

/** Splits a list, oldest first, into checkpoints to keep and to drop. Only those that `counts` selects are limited. */
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
