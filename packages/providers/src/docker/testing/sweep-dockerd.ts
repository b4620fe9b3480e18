import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { killAll } from "../../host/cgroup-files.ts";
import { removeBridge } from "./bridge.ts";
import { cgroupsNamed, cgroupTree, removeCgroup, thawCgroups } from "./cgroups.ts";
import { eventually } from "./eventually.ts";
import { findProcesses } from "./processes.ts";

const run = promisify(execFile);
/** The file with the name of the daemon's bridge. */
export const BRIDGE_FILE = "bridge";
/** Directories that a daemon creates elsewhere, innermost first. */
const RUN_DIRECTORIES = ["/run/containerd/s", "/run/containerd", "/run/docker/plugins", "/run/docker"];

/** Removes the processes, mounts and files of a daemon that has ended, even after a crash. */
export async function sweepDockerd(directory: string): Promise<void> {
  await thawCgroups(await cgroupsOf(directory));
  await endProcesses(directory);
  await unmountBelow(directory);
  for (const socket of await shimSockets(directory)) await rm(socket, { force: true });
  for (const bridge of await bridgesOf(directory)) await removeBridge(bridge);
  for (const cgroup of await cgroupsOf(directory)) await removeCgroup(cgroup);
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  // Those of another daemon are not empty; the machine's own daemon may need its empty ones.
  if (existsSync("/run/docker.pid")) return;
  for (const path of RUN_DIRECTORIES) await rmdir(path).catch(() => undefined);
}

async function endProcesses(directory: string): Promise<void> {
  await eventually(async () => {
    // containerd, shims and proxies inherit the daemon's TMPDIR.
    const isHelper = (environment: string) => environment.split("\0").includes(`TMPDIR=${directory}`);
    const pids = [...(await findProcesses(["environ"], isHelper)), ...(await contained(directory))];
    killAll(pids);
    return pids.length === 0;
  }, `the processes of the dockerd in ${directory} did not end`);
}

/** The processes in its containers. */
async function contained(directory: string): Promise<number[]> {
  const lists = (await cgroupsOf(directory)).map(async (cgroup) => {
    const all = await Promise.all((await cgroupTree(cgroup)).map((path) => read(join(path, "cgroup.procs"))));
    return all.join("\n").split("\n").filter(Boolean).map(Number);
  });
  return (await Promise.all(lists)).flat();
}

/** Its parent cgroup. */
function cgroupsOf(directory: string): Promise<string[]> {
  return cgroupsNamed(basename(directory));
}

async function unmountBelow(directory: string): Promise<void> {
  const lines = (await read("/proc/self/mounts")).split("\n");
  const points = lines.map((line) => line.split(" ")[1] ?? "").filter((path) => path.startsWith(`${directory}/`));
  if (points.length > 0) await run("umount", ["--lazy", ...points.reverse()]);
}

/** The shims' sockets, which are in a shared directory; each shim records its path. */
async function shimSockets(directory: string): Promise<string[]> {
  const tasks = join(directory, "exec/containerd/daemon/io.containerd.runtime.v2.task/moby");
  const ids = await readdir(tasks).catch(() => []);
  const addresses = await Promise.all(ids.map((id) => read(join(tasks, id, "address"))));
  return addresses.flatMap((address) => (address.startsWith("unix://") ? [address.slice("unix://".length)] : []));
}

/** Its own bridge, and those of remaining networks from the daemon's database. */
async function bridgesOf(directory: string): Promise<string[]> {
  const own = await read(join(directory, BRIDGE_FILE));
  const database = await readFile(join(directory, "data/network/files/local-kv.db"), "latin1").catch(() => "");
  return [...(own === "" ? [] : [own]), ...new Set(database.match(/\bbr-[0-9a-f]{12}\b/g))];
}

function read(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
