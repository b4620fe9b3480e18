import type { InstanceExit, InstanceSpec } from "@sandpiper/core";
import type { GvisorHost } from "./host.ts";

/** Why a sandbox has ended. Must run before its cgroup is removed, because the cgroup counts the OOM kills. */
export async function findExit(host: GvisorHost, { id, memoryMib }: InstanceSpec): Promise<InstanceExit> {
  if (await host.store.isRemoved(id)) return { reason: "destroyed", message: "it was removed by its id" };
  if ((await host.cgroups.oomKills(host.cgroupPath(id))) > 0) {
    return { reason: "out_of_memory", message: `its limit is ${memoryMib} MiB` };
  }
  const explanation = await host.runsc.explain(host.store.directory(id));
  return { reason: "crashed", message: explanation || "its processes ended without an error message" };
}
