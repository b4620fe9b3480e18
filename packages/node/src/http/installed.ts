import { SandboxError } from "@sandpiper/core";

/** A part that not every node has. */
export function installed<Part>(part: Part | undefined, reason: "no_checkpoints" | "no_cluster"): Part {
  if (part !== undefined) return part;
  throw new SandboxError("unimplemented", {
    reason,
    message: `this node has no ${reason === "no_checkpoints" ? "place to keep checkpoints" : "other nodes beside it"}`,
    hint: "ask a node that has a store",
  });
}
