import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { arch, cpus, loadavg, release, totalmem, type } from "node:os";

export type Machine = Awaited<ReturnType<typeof describeMachine>>;

export async function describeMachine(now: Date) {
  const cpuInfo = await readFile("/proc/cpuinfo", "utf8");
  const osRelease = existsSync("/etc/os-release") ? await readFile("/etc/os-release", "utf8") : "";
  return {
    cpu: cpus()[0]?.model.trim() ?? arch(),
    cores: cpus().length,
    memoryGib: Number((totalmem() / 2 ** 30).toFixed(1)),
    isVirtual: /^flags\s*:.*\bhypervisor\b/m.test(cpuInfo),
    kernel: `${type()} ${release()}`,
    distribution: /^PRETTY_NAME="(.*)"$/m.exec(osRelease)?.[1] ?? "unknown",
    cgroups: existsSync("/sys/fs/cgroup/cgroup.controllers") ? "v2" : "v1",
    node: process.version,
    /** Load average over a minute; load worsens every figure. */
    loadAtStart: Number((loadavg()[0] ?? 0).toFixed(2)),
    measuredAt: now.toISOString(),
    /** Versions of the measured programs, added as subjects open. */
    versions: {} as Record<string, string>,
  };
}
