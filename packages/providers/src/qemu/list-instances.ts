import type { InstanceRecord } from "@sandpiper/core";
import { isOwnerAlive } from "../host/process-owner.ts";
import { removeAbandonedMachines } from "../host/transient-machine.ts";
import type { QemuState } from "./host.ts";
import { cgroupOfInstance } from "./machine/instance-cgroup-name.ts";

/** All instances of this host, whoever owns them; what dead programs had in the making is ended. */
export async function listInstances(host: QemuState): Promise<InstanceRecord[]> {
  await removeAbandonedMachines(host);
  const entries = await host.store.list();
  return await Promise.all(
    entries.map(async ({ spec, createdAt, owner }) => ({
      id: spec.id,
      spec,
      createdAt: new Date(createdAt),
      isRunning: (await host.cgroups.processes(await cgroupOfInstance(host, spec.id))).length > 0,
      isOrphan: !(await isOwnerAlive(owner)),
    })),
  );
}
