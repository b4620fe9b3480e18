import type { InstanceRecord, InstanceSpec } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { listContainers } from "./container/list-containers.ts";
import type { DockerHost } from "./host.ts";

/** Lists the containers of this home on the engine and the entries of its store, also those without a counterpart. */
export async function listInstances({ engine, home, store }: DockerHost): Promise<readonly InstanceRecord[]> {
  // Entries last: an entry is written before its container is created, and removed after it.
  const containers = await listContainers(engine, home);
  const known = await store.records((id) => containers.get(id)?.isRunning ?? false);
  const ids = new Set(known.map(({ id }) => id));
  const unknown = [...containers.values()]
    .filter(({ id }) => !ids.has(id))
    // Without an entry the configuration is unknown: the container can be removed but not adopted.
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
