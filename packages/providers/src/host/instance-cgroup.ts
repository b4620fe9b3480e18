import { createHash } from "node:crypto";

/** How the names of the cgroups of all instances of this host begin, in the root of the cgroups. */
export const INSTANCE_PREFIX = "sandpiper-";

/**
 * The cgroup of an instance, below the root of the cgroups. It differs between the nodes of one machine, because during
 * a handoff both have the same sandbox for a moment.
 */
export function instanceCgroup(id: string, { stateDirectory }: { readonly stateDirectory: string }): string {
  const suffix = createHash("sha256").update(stateDirectory).digest("hex").slice(0, 8);
  return `/${INSTANCE_PREFIX}${id}-${suffix}`;
}
