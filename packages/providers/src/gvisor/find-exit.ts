import type { InstanceExit, InstanceSpec } from "@sandpiper/core";
import type { GvisorHost } from "./host.ts";

/** Why a sandbox is not running any more; must be asked before its cgroup is removed, which keeps the count. */
export async function findExit(host: GvisorHost, { id, memoryMib }: InstanceSpec): Promise<InstanceExit> {
  const directory = host.store.directory(id);
  if ((await host.store.read(id)) === undefined) {
    return { reason: "destroyed", message: `Instance ${id} was removed by another program.` };
  }
  if ((await host.cgroups.oomKills(host.cgroupPath(id))) > 0) {
    const message = `Instance ${id} was killed because it used more than its ${memoryMib} MiB of memory.`;
    return { reason: "out_of_memory", message };
  }
  const explanation = await host.runsc.explain(directory);
  return {
    reason: "crashed",
    message: `Instance ${id} ended by itself.${explanation === "" ? "" : ` ${explanation}`}`,
  };
}
