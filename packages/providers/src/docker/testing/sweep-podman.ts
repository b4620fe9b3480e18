import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cgroupsNamed, removeCgroup, thawCgroups } from "./cgroups.ts";

/** Of the directories' names, before the process that made them. */
export const PODMAN_PREFIX = "sandpiper-podman-";
/** The file of its directory in which it notes what happens. */
export const EVENTS_FILE = "events.log";
/** Below which each container of each Podman has its cgroups; that cannot be chosen. */
const PARENT = "libpod_parent";

/** Removes every trace of a Podman: what it started, mounted and made. */
export async function sweepPodman(directory: string, child?: ChildProcess): Promise<void> {
  const cgroups = await cgroupsOf(directory);
  await thawCgroups(cgroups);
  if (child !== undefined) await end(child);
  for (const cgroup of cgroups) await removeCgroup(cgroup);
  // Those that another Podman uses are not empty.
  for (const cgroup of [...(await cgroupsNamed(`${PARENT}/conmon`)), ...(await cgroupsNamed(PARENT))]) {
    await rmdir(cgroup).catch(() => undefined);
  }
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
}

/** A test run that was killed could not do it. */
export async function sweepForgottenPodmans(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(PODMAN_PREFIX));
  for (const name of names) {
    const owner = /^\d+/.exec(name.slice(PODMAN_PREFIX.length))?.[0];
    // Another test run may do the same at the same moment.
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) await sweepPodman(join(tmpdir(), name)).catch(() => {});
  }
}

export async function childrenOf(pid: number): Promise<number[]> {
  const pids = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return pids.split(" ").filter(Boolean).map(Number);
}

/** Its namespaces end with their first process, and are gone when that was waited for. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, "exit");
  const firsts = await childrenOf(child.pid);
  for (const pid of firsts) process.kill(pid, "SIGKILL");
  if (firsts.length === 0) child.kill("SIGKILL");
  await ended;
}

/** Of all that it has ever made: one that Podman removes after a crash of its own keeps its cgroups. */
async function cgroupsOf(directory: string): Promise<string[]> {
  const events = await readFile(join(directory, EVENTS_FILE), "utf8").catch(() => "");
  const ids = new Set(events.match(/\b[0-9a-f]{64}\b/g));
  return (await Promise.all([...ids].map((id) => cgroupsNamed(`${PARENT}/libpod-${id}`)))).flat();
}
