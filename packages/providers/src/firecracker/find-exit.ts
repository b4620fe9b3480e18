import type { InstanceExit } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { FirecrackerState } from "./host.ts";
import { explainMachine } from "./machine/start-machine.ts";

/** Why a machine has ended. Must run before its cgroup is removed, because the cgroup counts the OOM kills. */
export async function findExit(host: FirecrackerState, id: SandboxId): Promise<InstanceExit> {
  if (await host.store.isRemoved(id)) return { reason: "destroyed", message: "it was removed by its id" };
  if ((await host.cgroups.oomKills(host.cgroupPath(id))) > 0) {
    const message = "Firecracker used more memory than its guest's memory and its own allowance";
    return { reason: "out_of_memory", message };
  }
  const explanation = await explainMachine(host.store.directory(id));
  return { reason: "crashed", message: explanation || "Firecracker ended without an error message" };
}
