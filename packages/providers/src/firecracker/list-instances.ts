import type { InstanceRecord } from "@sandpiper/core";
import { removeAbandonedMachines } from "../host/transient-machine.ts";
import type { FirecrackerState } from "./host.ts";

/** All instances of this host, of any owner; ends the transient machines of dead programs. */
export async function listInstances(host: FirecrackerState): Promise<InstanceRecord[]> {
  await removeAbandonedMachines(host);
  return await host.store.records(async (id) => (await host.cgroups.processes(host.cgroupPath(id))).length > 0);
}
