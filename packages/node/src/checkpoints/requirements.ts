import { type CheckpointRequirements, SandboxError } from "@sandpiper/core";

/**
 * Lists the requirements of a checkpoint that this node does not meet. Additional CPU features are allowed, and agents of
 * earlier generations.
 */
function unmetRequirements(saved: CheckpointRequirements, here: CheckpointRequirements): readonly string[] {
  return Object.entries(saved).flatMap(([name, wanted]) => {
    const actual = here[name] ?? "";
    if (name === "agentGeneration" && Number(wanted) <= Number(actual)) return [];
    if (name !== "cpuFeatures") return wanted === actual ? [] : [`${name} is ${actual || "missing"}, not ${wanted}`];
    const present = new Set(actual.split(" "));
    const missing = wanted.split(" ").filter((feature) => !present.has(feature));
    return missing.length === 0 ? [] : [`cpuFeatures lack ${missing.join(" ")}`];
  });
}

/** Throws if this node cannot restore a checkpoint with these requirements. */
export function requireRestorable(subject: string, saved: CheckpointRequirements, here: CheckpointRequirements): void {
  const unmet = unmetRequirements(saved, here);
  if (unmet.length === 0) return;
  throw new SandboxError("incompatible_node", {
    message: `${subject} cannot be restored on this node: ${unmet.join("; ")}`,
    hint: hintFor(saved, here),
    details: { unmet: [...unmet] },
  });
}

/** Programs can be installed beside newer ones; a processor or an image cannot. */
function hintFor(saved: CheckpointRequirements, here: CheckpointRequirements): string | undefined {
  const { runtime = "", agent = "" } = saved;
  const missing = [
    ...(runtime.startsWith("runsc ") && runtime !== here["runtime"] ? [`runsc release ${runtime.slice(6)}`] : []),
    ...(agent !== "" && agent !== here["agent"] ? [`agent ${agent}`] : []),
  ];
  if (missing.length === 0) return undefined;
  return `keep ${missing.join(" and ")} on this node with \`sandpiper releases add FILE\`, or use a node that has it; the checkpoint is unchanged`;
}
