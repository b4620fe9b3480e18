import { readFile, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { listProcesses, type ProcessEntry } from "./processes.ts";
import { run } from "./run.ts";
import { walk } from "./walk.ts";

const CGROUP_ROOT = "/sys/fs/cgroup";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

/** Leftovers on the machine whose path or name contains one of the markers. */
interface Leftovers {
  readonly processes: readonly ProcessEntry[];
  readonly mounts: readonly string[];
  readonly cgroups: readonly string[];
}

async function findLeftovers(markers: readonly string[]): Promise<Leftovers> {
  const isOurs = (text: string) => markers.some((marker) => text.includes(marker));
  const processes = await listProcesses();
  return {
    processes: processes.filter((one) => one.id !== process.pid && isOurs(one.commandLine)),
    mounts: (await mountPoints()).filter(isOurs),
    cgroups: (await cgroupDirs()).filter(isOurs),
  };
}

/** Leftovers of instances in `home`: processes, mounts, cgroups, directories, files and FIFOs. */
export async function listLeft(home: string, instanceIds: readonly string[]): Promise<string[]> {
  const { processes, mounts, cgroups } = await findLeftovers([home, ...instanceIds]);
  const ids = new Set(instanceIds);
  const files = (await walk(home)).filter(
    (entry) => ids.has(UUID.exec(entry.name)?.[0] ?? "") || entry.isFIFO() || entry.isSocket(),
  );
  return [
    ...processes.map((one) => `process ${one.id}: ${one.commandLine}`),
    ...mounts.map((path) => `mount ${path}`),
    ...cgroups.map((path) => `cgroup ${path}`),
    ...files.map((entry) => `file ${join(entry.parentPath, entry.name)}`),
  ];
}

/** Removes a run's directory and everything that uses it, even after earlier failures. */
export async function removeLeftovers(dir: string): Promise<void> {
  const markers = [dir, basename(dir), ...(await instanceIds(dir))];
  for (let attempt = 0; attempt < 50; attempt++) {
    const left = await findLeftovers(markers);
    if (left.processes.length + left.mounts.length + left.cgroups.length === 0) return;
    for (const { id } of left.processes) kill(id);
    for (const mount of left.mounts.toReversed()) await run("umount", ["--lazy", mount]).catch(() => undefined);
    for (const cgroup of left.cgroups.toReversed()) await rmdir(cgroup).catch(() => undefined);
    await sleep(100);
  }
  throw new Error(`failed to remove ${dir}; leftovers: ${JSON.stringify(await findLeftovers(markers))}`);
}

/** Instances have directories named for them, and cgroups that contain only their id. */
async function instanceIds(dir: string): Promise<string[]> {
  return [...new Set((await walk(dir)).flatMap((entry) => UUID.exec(entry.name)?.[0] ?? []))];
}

function kill(processId: number): void {
  try {
    process.kill(processId, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}

async function mountPoints(): Promise<string[]> {
  const lines = (await readFile("/proc/self/mountinfo", "utf8")).trim().split("\n");
  return lines.map((line) => line.split(" ")[4] ?? "");
}

async function cgroupDirs(): Promise<string[]> {
  const entries = await walk(CGROUP_ROOT);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
}
