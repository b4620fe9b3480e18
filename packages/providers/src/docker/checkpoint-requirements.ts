import type { CheckpointRequirements } from "@sandpiper/core";
import type { Engine } from "./engine/engine.ts";

/** Files run on whatever runs their programs. The agent is the restoring host's own, and is not part of what is saved. */
export function checkpointRequirements({ info }: Engine): CheckpointRequirements {
  return { os: info.os, architecture: info.architecture };
}
