import type { Cgroups } from "../../host/cgroups.ts";
import * as machineCgroup from "../../host/machine-cgroup.ts";
import { TRANSLATION_MIB } from "./machine-arguments.ts";

/** QEMU itself, its devices' queues and what it keeps of the disks. */
const QEMU_MEMORY_MIB = 96;
/** Threads for disks and migration, beside one for each processor. */
const QEMU_THREADS = 96;

export interface MachineLimits {
  readonly memoryMib: number;
  readonly vcpuCount: number;
}

/** Makes the cgroup of a machine with its limits, and answers with the files that take a process into it. */
export function createMachineCgroup(
  cgroups: Cgroups,
  path: string,
  { memoryMib, vcpuCount }: MachineLimits,
): Promise<string[]> {
  const memoryBytes = (memoryMib + TRANSLATION_MIB + QEMU_MEMORY_MIB) * 2 ** 20;
  const maxThreads = QEMU_THREADS + Math.ceil(vcpuCount);
  return machineCgroup.createMachineCgroup(cgroups, path, { memoryBytes, vcpuCount, maxThreads });
}
