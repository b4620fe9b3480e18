import type { PoolKeyBody } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** The key of the warm pool that could serve this sandbox. */
export function instanceKey(record: Pick<SandboxRecord, keyof PoolKeyBody>): PoolKeyBody {
  const { provider, image, memoryMib, vcpuCount, diskMib, maxProcesses } = record;
  return { provider, image, memoryMib, vcpuCount, diskMib, maxProcesses };
}

export function instanceKeyText(key: PoolKeyBody): string {
  const { provider, image, memoryMib, vcpuCount, diskMib, maxProcesses } = key;
  return JSON.stringify([provider, image, memoryMib, vcpuCount, diskMib, maxProcesses]);
}
