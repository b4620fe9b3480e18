import type { SandboxId } from "@sandpiper/protocol";
import { endCgroup } from "../host/end-cgroup.ts";
import type { FirecrackerState } from "./host.ts";

/**
 * Removes every trace of an instance, in whatever state it is. Its directory goes last, with the jail in it: while anything is
 * left, it can be found and removed again.
 */
export async function removeInstance(host: FirecrackerState, id: SandboxId): Promise<void> {
  await host.store.beginRemoval(id);
  await endCgroup(host.cgroups, host.cgroupPath(id));
  await host.store.remove(id);
}
