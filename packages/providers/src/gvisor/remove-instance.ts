import type { SandboxId } from "@sandpiper/protocol";
import { endCgroup } from "../host/end-cgroup.ts";
import type { GvisorHost } from "./host.ts";

/**
 * Removes every trace of an instance, in whatever state it is. Its directory goes last: while anything is left, it can be
 * found and removed again.
 */
export async function removeInstance(host: GvisorHost, id: SandboxId): Promise<void> {
  await host.store.beginRemoval(id);
  // When runsc cannot, the cgroup still knows every process.
  await host.runsc.delete(id);
  await endCgroup(host.cgroups, host.cgroupPath(id));
  await host.runsc.forget(id);
  await host.store.remove(id);
}
