import type { InstanceExit } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { FirecrackerState } from "./host.ts";
import { explainMachine } from "./machine/start-machine.ts";

/** Why a machine is not running any more; must be asked before its cgroup is removed, which keeps the count. */
export async function findExit(host: FirecrackerState, id: SandboxId): Promise<InstanceExit> {
  if (await host.store.isRemoved(id)) return { reason: "destroyed", message: "it was removed by its id" };
  if ((await host.cgroups.oomKills(host.cgroupPath(id))) > 0) {
    const message = "Firecracker took more memory than its guest's and what it needs beside";
    return { reason: "out_of_memory", message };
  }
  const explanation = await explainMachine(host.store.directory(id));
  return { reason: "crashed", message: explanation || "Firecracker ended, and left no word why" };
}
