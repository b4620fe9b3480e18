import type { CheckpointRequirements } from "@sandpiper/core";
import type { Engine } from "./engine/engine.ts";

/** A checkpoint of files needs the same processor. It does not contain the agent: the restoring host brings its own. */
export function checkpointRequirements({ info }: Engine): CheckpointRequirements {
  return { os: info.os, architecture: info.architecture };
}
