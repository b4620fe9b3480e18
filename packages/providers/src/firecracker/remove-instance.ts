import type { SandboxId } from "@sandpiper/protocol";
import { endCgroup } from "../host/end-cgroup.ts";
import type { FirecrackerState } from "./host.ts";

/**
 * Removes every trace of an instance in any state. Its directory goes last, with its jail, so that an interrupted
 * removal can be found and repeated.
 */
export async function removeInstance(host: FirecrackerState, id: SandboxId): Promise<void> {
  await host.store.beginRemoval(id);
  await endCgroup(host.cgroups, host.cgroupPath(id));
  await host.store.remove(id);
}
