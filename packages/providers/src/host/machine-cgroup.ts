import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Cgroups, INSTANCE_IO_WEIGHT } from "./cgroups.ts";
import { sharesOf, weightOfShares } from "./cpu-shares.ts";

const ROOT = "/sys/fs/cgroup";
const CONTROLLERS = ["cpu", "memory", "pids"];
/** In version 1 they count CPU time and weigh I/O; some hosts lack them. */
const COUNTERS = ["cpuacct", "blkio"];
const CPU_PERIOD_US = 100_000;

/** For everything that runs for one machine: its guest's memory and the emulator's own. */
export interface MachineLimits {
  readonly memoryBytes: number;
  readonly vcpuCount: number;
  readonly maxThreads: number;
}

/** Makes the cgroup of a machine with its limits, and returns the files that move a process into it. */
export async function createMachineCgroup(cgroups: Cgroups, path: string, limits: MachineLimits): Promise<string[]> {
  const files = cgroups.version === 1 ? await createV1(cgroups, path, limits) : await createV2(cgroups, path, limits);
  cgroups.setIoWeight(path, INSTANCE_IO_WEIGHT);
  return files;
}

async function createV1({ canLimitSwap }: Cgroups, path: string, limits: MachineLimits): Promise<string[]> {
  const [cpu, memory, pids] = CONTROLLERS.map((controller) => join(ROOT, controller, path)) as [string, string, string];
  const counters = COUNTERS.map((name) => join(ROOT, name))
    .filter(existsSync)
    .map((root) => join(root, path));
  const directories = [cpu, memory, pids, ...counters];
  for (const directory of directories) await mkdir(directory, { recursive: true });
  const { memoryBytes, maxThreads } = limits;
  await Promise.all([
    set(cpu, "cpu.cfs_period_us", CPU_PERIOD_US).then(() => set(cpu, "cpu.cfs_quota_us", quota(limits))),
    set(memory, "memory.limit_in_bytes", memoryBytes).then(() =>
      canLimitSwap ? set(memory, "memory.memsw.limit_in_bytes", memoryBytes) : undefined,
    ),
    set(cpu, "cpu.shares", sharesOf(limits.vcpuCount)),
    set(pids, "pids.max", maxThreads),
  ]);
  return directories.map((directory) => join(directory, "cgroup.procs"));
}

async function createV2({ canLimitSwap }: Cgroups, path: string, limits: MachineLimits): Promise<string[]> {
  const directory = join(ROOT, path);
  for (const parent of parentsOf(path)) await delegate(join(ROOT, parent));
  await mkdir(directory, { recursive: true });
  await Promise.all([
    set(directory, "cpu.max", `${quota(limits)} ${CPU_PERIOD_US}`),
    set(directory, "cpu.weight", weightOfShares(sharesOf(limits.vcpuCount))),
    set(directory, "memory.max", limits.memoryBytes),
    canLimitSwap ? set(directory, "memory.swap.max", 0) : undefined,
    set(directory, "pids.max", limits.maxThreads),
  ]);
  return [join(directory, "cgroup.procs")];
}

/** From the root down, without the cgroup itself. */
function parentsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...parentsOf(parent), parent];
}

/** Writes only what is missing, because a cgroup with processes accepts no change. */
async function delegate(directory: string): Promise<void> {
  const file = join(directory, "cgroup.subtree_control");
  const present = (await readFile(file, "utf8")).trim().split(" ");
  const missing = CONTROLLERS.filter((controller) => !present.includes(controller));
  if (missing.length > 0) await writeFile(file, missing.map((controller) => `+${controller}`).join(" "));
}

function quota({ vcpuCount }: MachineLimits): number {
  return Math.round(vcpuCount * CPU_PERIOD_US);
}

function set(directory: string, name: string, value: string | number): Promise<void> {
  return writeFile(join(directory, name), String(value));
}
