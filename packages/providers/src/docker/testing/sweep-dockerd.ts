import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { removeBridge } from "./bridge.ts";
import { cgroupsNamed, cgroupTree, removeCgroup, thawCgroups } from "./cgroups.ts";

const run = promisify(execFile);
const ROUNDS = 300;
const ROUND_MS = 20;
/** The file of a daemon's directory in which the name of its bridge is. */
export const BRIDGE_FILE = "bridge";
/** Directories that a daemon makes outside of its own, innermost first. */
const RUN_DIRECTORIES = ["/run/containerd/s", "/run/containerd", "/run/docker/plugins", "/run/docker"];

/** Removes every trace of a daemon that has ended: what it started, mounted and made, also after a crash. */
export async function sweepDockerd(directory: string): Promise<void> {
  await thawCgroups(await cgroupsOf(directory));
  await endProcesses(directory);
  await unmountBelow(directory);
  for (const socket of await shimSockets(directory)) await rm(socket, { force: true });
  for (const bridge of await bridgesOf(directory)) await removeBridge(bridge);
  for (const cgroup of await cgroupsOf(directory)) await removeCgroup(cgroup);
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  // Those that another daemon uses are not empty; a machine's own may want its own even so.
  if (existsSync("/run/docker.pid")) return;
  for (const path of RUN_DIRECTORIES) await rmdir(path).catch(() => undefined);
}

async function endProcesses(directory: string): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const pids = [...(await helpers(directory)), ...(await contained(directory))];
    if (pids.length === 0) return;
    for (const pid of pids) kill(pid);
    await sleep(ROUND_MS);
  }
  throw new Error(`processes of the dockerd in ${directory} do not end`);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself meanwhile.
  }
}

/** containerd, shims and proxies: they have inherited the daemon's directory for temporary files. */
async function helpers(directory: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const variables = (await read(`/proc/${pid}/environ`)).split("\0");
      return variables.includes(`TMPDIR=${directory}`) ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}

/** What runs inside of its containers. */
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

/** A shim's socket is in a directory that all daemons share; where, it has written down. */
async function shimSockets(directory: string): Promise<string[]> {
  const tasks = join(directory, "exec/containerd/daemon/io.containerd.runtime.v2.task/moby");
  const ids = await readdir(tasks).catch(() => []);
  const addresses = await Promise.all(ids.map((id) => read(join(tasks, id, "address"))));
  return addresses.flatMap((address) => (address.startsWith("unix://") ? [address.slice("unix://".length)] : []));
}

/** Its own, and those of networks that were made and not removed, which the daemon's database names. */
async function bridgesOf(directory: string): Promise<string[]> {
  const own = await read(join(directory, BRIDGE_FILE));
  const database = await readFile(join(directory, "data/network/files/local-kv.db"), "latin1").catch(() => "");
  return [...(own === "" ? [] : [own]), ...new Set(database.match(/\bbr-[0-9a-f]{12}\b/g))];
}

function read(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
