import { globSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import { killAll } from "../cgroup-files.ts";

/** Everything on this host that names the instance: processes, cgroups, files. */
export async function tracesOf(id: SandboxId, stateDirectory: string): Promise<string[]> {
  const processes = (await machineProcesses(id)).map((pid) => `process ${pid}`);
  const files = await Promise.all([below("/sys/fs/cgroup", id, 2), below(stateDirectory, id, 6)]);
  return [...processes, ...files.flat()];
}

/** Kills a machine from outside, like a fault. */
export async function crashMachine(id: SandboxId): Promise<void> {
  killAll(await machineProcesses(id));
}

/** The processes in an instance's cgroup. */
export async function machineProcesses(id: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => ((await read(`/proc/${pid}/cgroup`)).includes(id) ? [Number(pid)] : [])),
  );
  return found.flat();
}

/** The first of these files in the cgroups of an instance; versions 1 and 2 have different names. */
export async function readCgroup(id: string, ...names: readonly string[]): Promise<string> {
  const [path] = names.flatMap((name) => globSync(`/sys/fs/cgroup/{*/,}sandpiper-${id}-*/${name}`));
  return path === undefined ? "" : (await read(path)).trim();
}

/** The paths below a directory whose last part contains the id. */
export async function below(directory: string, id: string, depth: number): Promise<string[]> {
  if (depth === 0) return [];
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = join(directory, entry.name);
      if (entry.name.includes(id)) return [path];
      return entry.isDirectory() ? await below(path, id, depth - 1) : [];
    }),
  );
  return found.flat();
}

export function read(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
