import { readdir } from "node:fs/promises";
import type { SandboxId } from "@sandpiper/protocol";
import { below, read } from "../../host/testing/machine-traces.ts";

/** Everything on this host that names the instance: processes, mounts, cgroups, files. */
export async function tracesOf(id: SandboxId, stateDirectory: string): Promise<string[]> {
  return (
    await Promise.all([processes(id), mounts(id), below("/sys/fs/cgroup", id, 2), below(stateDirectory, id, 6)])
  ).flat();
}

/** Kills a sandbox from outside, like a fault. */
export async function crashSandbox(id: SandboxId): Promise<void> {
  const kernels = (await processes(id)).map((trace) => /^process (\d+) runsc-sandbox/.exec(trace)?.[1]);
  for (const pid of kernels) if (pid !== undefined) process.kill(Number(pid), "SIGKILL");
}

async function processes(id: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [commandLine, cgroup] = await Promise.all([read(`/proc/${pid}/cmdline`), read(`/proc/${pid}/cgroup`)]);
      return commandLine.includes(id) || cgroup.includes(id) ? [`process ${pid} ${commandLine.slice(0, 100)}`] : [];
    }),
  );
  return found.flat();
}

async function mounts(id: string): Promise<string[]> {
  return (await read("/proc/self/mounts")).split("\n").filter((line) => line.includes(id));
}
