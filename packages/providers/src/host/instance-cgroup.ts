import { createHash } from "node:crypto";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";

interface InstanceCgroupOptions {
  readonly stateDirectory: string;
  /** An existing cgroup for the sandboxes' cgroups. */
  readonly cgroupParent?: string | undefined;
}

/**
 * The cgroup of an instance, below the root of the cgroups. It differs between the nodes of one machine, because during
 * a handoff both have the same sandbox for a moment.
 */
export function instanceCgroup(id: SandboxId, { stateDirectory, cgroupParent = "" }: InstanceCgroupOptions): string {
  const suffix = createHash("sha256").update(stateDirectory).digest("hex").slice(0, 8);
  return join("/", cgroupParent, `sandpiper-${id}-${suffix}`);
}
