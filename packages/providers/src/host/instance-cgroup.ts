import { createHash } from "node:crypto";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";

interface InstancePlace {
  readonly stateDirectory: string;
  /** An existing cgroup to make the sandboxes' cgroups in. */
  readonly cgroupParent?: string | undefined;
}

/**
 * The cgroup of an instance, below the root of the cgroups. Two nodes of one machine may have the same sandbox for a moment,
 * when it moves from one to the other, and must not have the same cgroup.
 */
export function instanceCgroup(id: SandboxId, { stateDirectory, cgroupParent = "" }: InstancePlace): string {
  const place = createHash("sha256").update(stateDirectory).digest("hex").slice(0, 8);
  return join("/", cgroupParent, `sandpiper-${id}-${place}`);
}
