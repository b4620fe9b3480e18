import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OrphanVm } from "../vm/vm-driver.ts";

const MARK = "machine.json";

interface MachineMark {
  readonly projectId: string;
  /** The program that started the machine. */
  readonly pid: number;
}

/** Creates a machine's directory and records its owner, before anything of it starts. */
export async function markMachine(directory: string, projectId: string): Promise<void> {
  const mark: MachineMark = { projectId, pid: process.pid };
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(join(directory, MARK), JSON.stringify(mark));
}

/** Machines whose host program has ended. They cannot be adopted, because only their parent process sees them end. */
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

/** A damaged mark is from a program that died while it wrote the file. */
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
    // The process runs as another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
