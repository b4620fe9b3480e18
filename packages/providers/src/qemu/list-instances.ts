import type { InstanceRecord } from "@sandpiper/core";
import { removeAbandonedMachines } from "../host/transient-machine.ts";
import type { QemuState } from "./host.ts";
import { cgroupOfInstance } from "./machine/instance-cgroup-name.ts";

/** All instances of this host, of any owner; ends the transient machines of dead programs. */
export async function listInstances(host: QemuState): Promise<InstanceRecord[]> {
  await removeAbandonedMachines(host);
  return await host.store.records(
    async (id) => (await host.cgroups.processes(await cgroupOfInstance(host, id))).length > 0,
  );
}
