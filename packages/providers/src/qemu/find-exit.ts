import type { InstanceExit } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { QemuState } from "./host.ts";
import { cgroupOfInstance } from "./machine/instance-cgroup-name.ts";
import { explainMachine } from "./machine/start-machine.ts";

/** Why a machine has ended. Must run before its cgroup is removed, because the cgroup counts the OOM kills. */
export async function findExit(host: QemuState, id: SandboxId): Promise<InstanceExit> {
  if (await host.store.isRemoved(id)) return { reason: "destroyed", message: "it was removed by its id" };
  if ((await host.cgroups.oomKills(await cgroupOfInstance(host, id))) > 0) {
    return { reason: "out_of_memory", message: "QEMU used more memory than its guest's memory and its own allowance" };
  }
  const explanation = await explainMachine(host.machineDirectory(id));
  return { reason: "crashed", message: explanation || "QEMU ended without an error message" };
}
