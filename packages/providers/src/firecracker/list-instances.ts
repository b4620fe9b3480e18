import type { InstanceRecord } from "@sandpiper/core";
import { isOwnerAlive } from "../host/process-owner.ts";
import { removeAbandonedMachines } from "../host/transient-machine.ts";
import type { FirecrackerState } from "./host.ts";

/** All instances of this host, whoever owns them; what dead programs had in the making is ended. */
export async function listInstances(host: FirecrackerState): Promise<InstanceRecord[]> {
  await removeAbandonedMachines(host);
  const entries = await host.store.list();
  return await Promise.all(
    entries.map(async ({ spec, createdAt, owner }) => ({
      id: spec.id,
      spec,
      createdAt: new Date(createdAt),
      isRunning: (await host.cgroups.processes(host.cgroupPath(spec.id))).length > 0,
      isOrphan: !(await isOwnerAlive(owner)),
    })),
  );
}
