import { readFile, writeFile } from "node:fs/promises";
import type { InstanceSpec } from "@sandpiper/core";
import type { GvisorHost } from "./host.ts";

const MIB = 1024 * 1024;

/** gVisor does not boot with less. */
const MIN_BOOT_MIB = 64;

/**
 * Between the guest's memory and the host's limit: gVisor's own memory (15 MiB after boot, about half a MiB for each
 * process inside), and what programs allocate before the agent has killed the largest.
 */
const HEADROOM_MIB = 192;

/** The host kills the stand-ins of processes inside before gVisor's kernel, whose end is that of the sandbox. */
const STUB_OOM_SCORE = "1000";

/** The cgroup's limit at boot, which gVisor reports to programs inside as the machine's memory. */
export function bootMemoryBytes({ memoryMib }: InstanceSpec): number {
  return Math.max(memoryMib, MIN_BOOT_MIB) * MIB;
}

/** Gives a booted instance its headroom, and steers the host's OOM killer. Can be repeated. */
export async function settleMemory({ cgroups, cgroupPath }: GvisorHost, spec: InstanceSpec): Promise<void> {
  const path = cgroupPath(spec.id);
  await cgroups.raiseMemory(path, bootMemoryBytes(spec) + HEADROOM_MIB * MIB);
  for (const pid of (await cgroups.processes(path)).toSorted((a, b) => a - b)) {
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => undefined);
    if (commandLine === "") {
      // The first stand-in: all others are its copies and inherit the score.
      await writeFile(`/proc/${pid}/oom_score_adj`, STUB_OOM_SCORE);
      return;
    }
  }
}
