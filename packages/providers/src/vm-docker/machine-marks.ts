import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OrphanVm } from "@sandpiper/core";

const MARK = "machine.json";

interface MachineMark {
  readonly projectId: string;
  /** Of the program that started it. */
  readonly pid: number;
}

/** Makes the directory of a machine, with whose it is: nothing of it is started before this. */
export async function markMachine(directory: string, projectId: string): Promise<void> {
  const mark: MachineMark = { projectId, pid: process.pid };
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(join(directory, MARK), JSON.stringify(mark));
}

/** Machines whose program has ended. They cannot be taken over, since nobody would learn of their end. */
export async function listAbandoned(root: string): Promise<readonly OrphanVm[]> {
  const ids = await readdir(root).catch(() => []);
  const found = await Promise.all(
    ids.map(async (id) => {
      const mark = await readMark(join(root, id, MARK));
      return isAlive(mark.pid) ? [] : [{ id, projectId: mark.projectId, isRunning: false }];
    }),
  );
  return found.flat();
}

/** One that is damaged is of a program that died while it wrote it. */
async function readMark(path: string): Promise<MachineMark> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return { projectId: "", pid: 0 };
  }
}

function isAlive(pid: number): boolean {
  if (pid === 0) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It runs, and is somebody else's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
