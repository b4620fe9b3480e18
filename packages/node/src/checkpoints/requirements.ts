import { type CheckpointRequirements, SandboxError } from "@sandpiper/core";

/** Lists the differences between the node that took a checkpoint and this one. More CPU features are fine, fewer are not. */
function unmetRequirements(saved: CheckpointRequirements, here: CheckpointRequirements): readonly string[] {
  return Object.entries(saved).flatMap(([name, wanted]) => {
    const found = here[name] ?? "";
    if (name !== "cpuFeatures") return wanted === found ? [] : [`${name} is ${found || "missing"}, not ${wanted}`];
    const present = new Set(found.split(" "));
    const missing = wanted.split(" ").filter((feature) => !present.has(feature));
    return missing.length === 0 ? [] : [`cpuFeatures lack ${missing.join(" ")}`];
  });
}

/** Throws when this node cannot restore what another node saved. */
export function requireRestorable(what: string, saved: CheckpointRequirements, here: CheckpointRequirements): void {
  const unmet = unmetRequirements(saved, here);
  if (unmet.length === 0) return;
  throw new SandboxError("failed_precondition", {
    reason: "incompatible_node",
    message: `${what} cannot be restored on this node: ${unmet.join("; ")}`,
    hint: "restore it on a node like the one that saved it; nothing was changed",
    details: { unmet: [...unmet] },
  });
}
