import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The processes whose files in /proc, read as one text, match. */
export async function findProcesses(
  files: readonly string[],
  isMatch: (text: string) => boolean,
): Promise<readonly number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = pids.map(async (pid) => {
    const texts = files.map((file) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => ""));
    return isMatch((await Promise.all(texts)).join(" ")) ? [Number(pid)] : [];
  });
  return (await Promise.all(found)).flat();
}

/** Cleans up after killed test runs. The names of their directories are this prefix and the pid of the run. */
export async function sweepForgotten(prefix: string, sweep: (directory: string) => Promise<void>): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const owner = name.startsWith(prefix) ? /^\d+/.exec(name.slice(prefix.length))?.[0] : undefined;
    // Another test run may clean up at the same time.
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) await sweep(join(tmpdir(), name)).catch(() => {});
  }
}
