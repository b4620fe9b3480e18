import type { InstanceRecord, InstanceSpec } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { isOwnerAlive } from "../host/process-owner.ts";
import { listContainers } from "./container/list-containers.ts";
import type { DockerHost } from "./host.ts";

/** What this home has on the engine and in its own records: each is found, also where the other is lost. */
export async function listInstances({ engine, home, store }: DockerHost): Promise<readonly InstanceRecord[]> {
  // Entries last: one is there before its container, and goes after it.
  const containers = await listContainers(engine, home);
  const entries = await store.list();
  const known = await Promise.all(
    entries.map(async ({ spec, createdAt, owner }) => ({
      id: spec.id,
      spec,
      createdAt: new Date(createdAt),
      isRunning: containers.get(spec.id)?.isRunning ?? false,
      isOrphan: !(await isOwnerAlive(owner)),
    })),
  );
  const ids = new Set(known.map(({ id }) => id));
  const unknown = [...containers.values()]
    .filter(({ id }) => !ids.has(id))
    // Without its entry nobody knows how it was made, so that it can be removed and not adopted.
    .map(({ id, createdAt }) => ({ id, spec: unknownSpec(id), createdAt, isRunning: false, isOrphan: true }));
  return [...known, ...unknown];
}

function unknownSpec(id: SandboxId): InstanceSpec {
  return Object.freeze({
    id,
    rootfs: "host",
    kernel: undefined,
    memoryMib: 0,
    vcpuCount: 0,
    diskMib: 0,
    maxProcesses: 0,
    env: {},
    container: undefined,
    vsockCid: 0,
    labels: {},
  });
}
