import type { SandboxId } from "@sandpiper/protocol";
import { endCgroup } from "../host/end-cgroup.ts";
import type { GvisorHost } from "./host.ts";

/**
 * Removes every trace of an instance in any state. Its directory goes last, so that an interrupted removal can be found
 * and repeated.
 */
export async function removeInstance(host: GvisorHost, id: SandboxId): Promise<void> {
  await host.store.beginRemoval(id);
  // If runsc fails, the cgroup still contains every process.
  await host.runsc.delete(id);
  await endCgroup(host.cgroups, host.cgroupPath(id));
  await host.runsc.forget(id);
  await host.store.remove(id);
}
