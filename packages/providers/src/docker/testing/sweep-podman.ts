import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { cgroupsNamed, removeCgroup, thawCgroups } from "./cgroups.ts";

/** The prefix of its directories' names, before the pid of the test run. */
export const PODMAN_PREFIX = "sandpiper-podman-";
/** The file with Podman's events. */
export const EVENTS_FILE = "events.log";
/** The parent cgroup of all containers of every Podman. */
const PARENT = "libpod_parent";

/** Removes the processes, mounts and files of a Podman. */
export async function sweepPodman(directory: string, child?: ChildProcess): Promise<void> {
  const cgroups = await cgroupsOf(directory);
  await thawCgroups(cgroups);
  if (child !== undefined) await end(child);
  for (const cgroup of cgroups) await removeCgroup(cgroup);
  // Those of another Podman are not empty.
  for (const cgroup of [...(await cgroupsNamed(`${PARENT}/conmon`)), ...(await cgroupsNamed(PARENT))]) {
    await rmdir(cgroup).catch(() => undefined);
  }
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
}

export async function childrenOf(pid: number): Promise<number[]> {
  const pids = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return pids.split(" ").filter(Boolean).map(Number);
}

/** Kills the first process of its namespaces, which ends them. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, "exit");
  const firsts = await childrenOf(child.pid);
  for (const pid of firsts) process.kill(pid, "SIGKILL");
  if (firsts.length === 0) child.kill("SIGKILL");
  await ended;
}

/** The cgroups of all its containers, even removed ones: after a crash Podman removes containers without their cgroups. */
async function cgroupsOf(directory: string): Promise<string[]> {
  const events = await readFile(join(directory, EVENTS_FILE), "utf8").catch(() => "");
  const ids = new Set(events.match(/\b[0-9a-f]{64}\b/g));
  return (await Promise.all([...ids].map((id) => cgroupsNamed(`${PARENT}/libpod-${id}`)))).flat();
}
