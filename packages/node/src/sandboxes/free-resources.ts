import { readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";

export type HostResource = "disk" | "memory" | "pids";

/** What is free: MiB of disk and memory, and a number of pids. A resource that the host does not report is missing. */
export type FreeResources = Readonly<Partial<Record<HostResource, { readonly left: number; readonly where?: string }>>>;

const MIB = 1024 * 1024;

/** Reads the host, and the limits of the node's own cgroup where it has any. */
export function freeResources(paths: readonly string[], root = "/"): FreeResources {
  const disk = freeDisk(paths);
  const memory = leastOf(freeHostMemory(root), freeCgroupMemory(root));
  const pids = leastOf(freeHostPids(root), freeCgroupPids(root));
  return {
    ...(disk && { disk }),
    ...(memory !== undefined && { memory: { left: Math.floor(memory / MIB) } }),
    ...(pids !== undefined && { pids: { left: pids } }),
  };
}

/** The fullest of the disks. */
function freeDisk(paths: readonly string[]): { left: number; where: string } | undefined {
  const disks = paths.flatMap((where) => {
    try {
      const { bavail, bsize } = statfsSync(where);
      return [{ left: Math.floor((bavail * bsize) / MIB), where }];
    } catch {
      return [];
    }
  });
  return disks.toSorted((a, b) => a.left - b.left)[0];
}

function freeHostMemory(root: string): number | undefined {
  const kib = /^MemAvailable:\s+(\d+) kB$/m.exec(read(root, "proc/meminfo") ?? "")?.[1];
  return kib === undefined ? undefined : Number(kib) * 1024;
}

/** Page cache counts as free: the kernel drops it when a program needs memory. */
function freeCgroupMemory(root: string): number | undefined {
  const v2 = cgroup(root, "");
  const limit = number(root, `${v2}/memory.max`);
  if (limit !== undefined) {
    const used = number(root, `${v2}/memory.current`) ?? 0;
    return limit - used + fileCache(read(root, `${v2}/memory.stat`), "");
  }
  const v1 = cgroup(root, "memory");
  const limitV1 = number(root, `${v1}/memory.limit_in_bytes`);
  if (limitV1 === undefined) return undefined;
  const used = number(root, `${v1}/memory.usage_in_bytes`) ?? 0;
  return limitV1 - used + fileCache(read(root, `${v1}/memory.stat`), "total_");
}

function fileCache(stat = "", prefix: string): number {
  const of = (name: string) => Number(new RegExp(`^${prefix}${name} (\\d+)$`, "m").exec(stat)?.[1] ?? 0);
  return of("inactive_file") + of("active_file");
}

function freeHostPids(root: string): number | undefined {
  // The fourth field counts all tasks of the host: threads use pids, too.
  const tasks = /^\S+ \S+ \S+ \d+\/(\d+) /.exec(read(root, "proc/loadavg") ?? "")?.[1];
  const limit = leastOf(number(root, "proc/sys/kernel/pid_max"), number(root, "proc/sys/kernel/threads-max"));
  return tasks === undefined || limit === undefined ? undefined : limit - Number(tasks);
}

function freeCgroupPids(root: string): number | undefined {
  for (const directory of [cgroup(root, ""), cgroup(root, "pids")]) {
    const limit = number(root, `${directory}/pids.max`);
    if (limit !== undefined) return limit - (number(root, `${directory}/pids.current`) ?? 0);
  }
  return undefined;
}

/** The node's own cgroup below the mount of a v1 controller, or of v2 for an empty name. */
function cgroup(root: string, controller: string): string {
  const lines = (read(root, "proc/self/cgroup") ?? "").split("\n").map((line) => line.split(":"));
  const own = lines.find(([, names]) => (controller === "" ? names === "" : names?.split(",").includes(controller)));
  const path = own?.slice(2).join(":") ?? "/";
  return join("sys/fs/cgroup", controller, path);
}

/** Undefined for a missing file and for "max". */
function number(root: string, path: string): number | undefined {
  const text = read(root, path)?.trim() ?? "";
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function read(root: string, path: string): string | undefined {
  try {
    return readFileSync(join(root, path), "utf8");
  } catch {
    return undefined;
  }
}

function leastOf(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}
