import type { InstanceRecord } from "@sandpiper/core";
import { isOwnerAlive } from "../host/process-owner.ts";
import type { QemuPlace } from "./host.ts";
import { cgroupOfInstance } from "./instance-cgroup-name.ts";
import { sweepNursery } from "./nursery.ts";

/** All instances of this host, whoever owns them; what dead programs had in the making is ended. */
export async function listInstances(host: QemuPlace): Promise<InstanceRecord[]> {
  await sweepNursery(host);
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
