import { SandboxError } from "@sandpiper/core";
import type { CheckpointResource } from "@sandpiper/protocol";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";

/**
 * Finds a checkpoint by id or name. Without one, the newest that a caller took: an automatic one may already contain the
 * mistake that the caller wants to undo. If all are automatic, the newest. Throws `no_such_checkpoint`.
 */
export function findCheckpoint(saved: SavedSandbox | undefined, wanted: string | undefined): CheckpointResource {
  const checkpoints = saved?.checkpoints ?? [];
  const checkpoint =
    wanted === undefined
      ? (checkpoints.findLast(({ isAutomatic }) => !isAutomatic) ?? checkpoints.at(-1))
      : checkpoints.find(({ id, name }) => id === wanted || (name !== null && name === wanted));
  if (checkpoint !== undefined) return checkpoint;
  throw new SandboxError("no_such_checkpoint", {
    message: wanted === undefined ? "the sandbox has no checkpoint" : `the sandbox has no checkpoint ${wanted}`,
    hint: "list the sandbox's checkpoints to see their ids and names",
  });
}
