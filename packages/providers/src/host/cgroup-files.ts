import { readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "./has-code.ts";

/** Process ids in one cgroup directory; none when it does not exist. */
export async function readProcesses(directory: string): Promise<number[]> {
  const text = await readFile(join(directory, "cgroup.procs"), "utf8").catch(() => "");
  return text.split("\n").filter(Boolean).map(Number);
}

/** Kills every process that is in the list now. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended since the list was read.
    }
  }
}

/** The number after `name` in a file of lines like `oom_kill 3`. */
export function readCounter(text: string, name: string): number {
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.slice(name.length + 1));
}

/** False when the cgroup still holds processes or other cgroups. */
export async function removeCgroup(directory: string): Promise<boolean> {
  try {
    await rmdir(directory);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return true;
    if (hasCode(error, "EBUSY", "ENOTEMPTY")) return false;
    throw error;
  }
}
