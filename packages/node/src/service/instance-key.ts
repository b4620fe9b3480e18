import type { PoolKeyBody } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** Everything that shapes an instance; no pool has containers that were asked for in detail. */
export interface InstanceKey extends PoolKeyBody {
  readonly container?: SandboxRecord["container"];
}

/** The key of the warm pool that could serve this sandbox. */
export function instanceKey(record: Pick<SandboxRecord, keyof InstanceKey>): InstanceKey {
  const { provider, image, container, memoryMib, vcpuCount, diskMib, maxProcesses } = record;
  return { provider, image, container, memoryMib, vcpuCount, diskMib, maxProcesses };
}

export function instanceKeyText(key: InstanceKey): string {
  const { provider, image, container = null, memoryMib, vcpuCount, diskMib, maxProcesses } = key;
  return JSON.stringify([provider, image, container, memoryMib, vcpuCount, diskMib, maxProcesses]);
}
