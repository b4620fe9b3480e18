import { readdirSync, readFileSync, writeFileSync } from "node:fs";
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

/** The text of a file, undefined when it does not exist or cannot be read now. */
export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** Writes those of these files that exist and accept the text. */
export function writeIfPresent(paths: readonly string[], text: string): void {
  for (const path of paths) {
    try {
      // "r+" never creates the file.
      writeFileSync(path, text, { flag: "r+" });
    } catch {
      // The cgroup has ended, or its kernel lacks the file.
    }
  }
}

/** The names of the cgroups in a directory; none when it does not exist. */
export function directoriesIn(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}

/** A quota of CPU time per period, in CPUs; undefined when it is unlimited. */
export function cpusOf(quota: string | undefined, period: string | undefined): number | undefined {
  const cpus = Number(quota) / Number(period);
  return cpus > 0 ? cpus : undefined;
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
