import { type CheckpointRequirements, SandboxError } from "@sandpiper/core";

/** Names what differs between where a checkpoint was taken and here; a machine may have more CPU features, not fewer. */
function unmetRequirements(saved: CheckpointRequirements, here: CheckpointRequirements): readonly string[] {
  return Object.entries(saved).flatMap(([name, wanted]) => {
    const found = here[name] ?? "";
    if (name !== "cpuFeatures") return wanted === found ? [] : [`${name} is ${found || "missing"}, not ${wanted}`];
    const present = new Set(found.split(" "));
    const missing = wanted.split(" ").filter((feature) => !present.has(feature));
    return missing.length === 0 ? [] : [`cpuFeatures lack ${missing.join(" ")}`];
  });
}

/** Throws when what was saved there cannot be restored here. */
export function requireRestorable(what: string, saved: CheckpointRequirements, here: CheckpointRequirements): void {
  const unmet = unmetRequirements(saved, here);
  if (unmet.length === 0) return;
  throw new SandboxError("failed_precondition", {
    reason: "incompatible_node",
    message: `${what} cannot be restored on this node: ${unmet.join("; ")}`,
    hint: "restore it on a node that is like the one it was saved on; it stays where it is",
    details: { unmet: [...unmet] },
  });
}
