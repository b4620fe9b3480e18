import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Cgroups } from "../host/cgroups.ts";
import { TRANSLATION_MIB } from "./machine-arguments.ts";

const ROOT = "/sys/fs/cgroup";
const CONTROLLERS = ["cpu", "memory", "pids"];
const CPU_PERIOD_US = 100_000;
/** QEMU itself, its devices' queues and what it keeps of the disks. */
const QEMU_MEMORY_MIB = 96;
/** Threads for disks and migration, beside one for each processor. */
const QEMU_THREADS = 96;

export interface MachineLimits {
  readonly memoryMib: number;
  readonly vcpuCount: number;
}

/** Makes the cgroup of a machine with its limits, and answers with the files that take a process into it. */
export async function createMachineCgroup(cgroups: Cgroups, path: string, limits: MachineLimits): Promise<string[]> {
  return cgroups.version === 1 ? await createV1(cgroups, path, limits) : await createV2(cgroups, path, limits);
}

async function createV1({ canLimitSwap }: Cgroups, path: string, limits: MachineLimits): Promise<string[]> {
  const [cpu, memory, pids] = CONTROLLERS.map((controller) => join(ROOT, controller, path)) as [string, string, string];
  for (const directory of [cpu, memory, pids]) await mkdir(directory, { recursive: true });
  const bytes = memoryBytes(limits);
  await Promise.all([
    set(cpu, "cpu.cfs_period_us", CPU_PERIOD_US).then(() => set(cpu, "cpu.cfs_quota_us", quota(limits))),
    set(memory, "memory.limit_in_bytes", bytes).then(() =>
      canLimitSwap ? set(memory, "memory.memsw.limit_in_bytes", bytes) : undefined,
    ),
    set(pids, "pids.max", maxThreads(limits)),
  ]);
  return [cpu, memory, pids].map((directory) => join(directory, "cgroup.procs"));
}

async function createV2({ canLimitSwap }: Cgroups, path: string, limits: MachineLimits): Promise<string[]> {
  const directory = join(ROOT, path);
  for (const parent of parentsOf(path)) await delegate(join(ROOT, parent));
  await mkdir(directory, { recursive: true });
  await Promise.all([
    set(directory, "cpu.max", `${quota(limits)} ${CPU_PERIOD_US}`),
    set(directory, "memory.max", memoryBytes(limits)),
    canLimitSwap ? set(directory, "memory.swap.max", 0) : undefined,
    set(directory, "pids.max", maxThreads(limits)),
  ]);
  return [join(directory, "cgroup.procs")];
}

/** From the root down, without the cgroup itself. */
function parentsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...parentsOf(parent), parent];
}

/** Only what is missing is written: a cgroup that has processes of its own takes no change. */
async function delegate(directory: string): Promise<void> {
  const file = join(directory, "cgroup.subtree_control");
  const present = (await readFile(file, "utf8")).trim().split(" ");
  const missing = CONTROLLERS.filter((controller) => !present.includes(controller));
  if (missing.length > 0) await writeFile(file, missing.map((controller) => `+${controller}`).join(" "));
}

function memoryBytes({ memoryMib }: MachineLimits): number {
  return (memoryMib + TRANSLATION_MIB + QEMU_MEMORY_MIB) * 2 ** 20;
}

function quota({ vcpuCount }: MachineLimits): number {
  return Math.round(vcpuCount * CPU_PERIOD_US);
}

function maxThreads({ vcpuCount }: MachineLimits): number {
  return QEMU_THREADS + Math.ceil(vcpuCount);
}

function set(directory: string, name: string, value: string | number): Promise<void> {
  return writeFile(join(directory, name), String(value));
}
