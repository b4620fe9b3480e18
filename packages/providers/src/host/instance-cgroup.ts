import { createHash } from "node:crypto";

/**
 * The cgroup of an instance, below the root of the cgroups. It differs between the nodes of one machine, because during
 * a handoff both have the same sandbox for a moment.
 */
export function instanceCgroup(id: string, { stateDirectory }: { readonly stateDirectory: string }): string {
  const suffix = createHash("sha256").update(stateDirectory).digest("hex").slice(0, 8);
  return `/sandpiper-${id}-${suffix}`;
}
