import type { SandboxId } from "@sandpiper/protocol";
import { endCgroup } from "../host/end-cgroup.ts";
import type { QemuState } from "./host.ts";
import { cgroupOfInstance } from "./machine/instance-cgroup-name.ts";

/**
 * Removes every trace of an instance in any state. Its directory goes last, so that an interrupted removal can be found
 * and repeated.
 */
export async function removeInstance(host: QemuState, id: SandboxId): Promise<void> {
  await host.store.beginRemoval(id);
  await endCgroup(host.cgroups, await cgroupOfInstance(host, id));
  await host.store.remove(id);
}
