import { constants } from "node:fs";
import { chmod, chown, copyFile, link, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { copySparse } from "./copy-sparse.ts";
import type { Jail } from "./jail.ts";
import { MEMORY, SNAPSHOT, STATE } from "./machine-files.ts";

const SAVED = [STATE, MEMORY];
const READ_ONLY = 0o444;

/** Links a saved machine into a jail without copying it. The files stay while a machine runs from them. */
export async function linkSnapshot(saved: string, { machine }: Pick<Jail, "machine">): Promise<void> {
  const directory = join(machine, SNAPSHOT);
  await mkdir(directory, { mode: 0o755 });
  await Promise.all(
    SAVED.map(async (name) => {
      const [from, to] = [join(saved, name), join(directory, name)];
      await chmod(from, READ_ONLY);
      await link(from, to).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EXDEV") throw error;
        return copySparse(from, to);
      });
    }),
  );
}

/** An empty directory that Firecracker can write a snapshot to. */
export async function makeSnapshotDirectory(machine: string, uid: number): Promise<string> {
  const directory = join(machine, NEXT_SNAPSHOT);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { mode: 0o700 });
  await chown(directory, uid, uid);
  return directory;
}

/** Not `SNAPSHOT`, because the machine may still read its memory from there. */
export const NEXT_SNAPSHOT = "next-snapshot";

/** Moves a snapshot out of the jail. */
export async function takeSnapshot(snapshot: string, directory: string): Promise<void> {
  for (const name of SAVED) {
    const [from, to] = [join(snapshot, name), join(directory, name)];
    await rename(from, to).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "EXDEV") throw error;
      await copyFile(from, to, constants.COPYFILE_EXCL);
    });
    await chown(to, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
  }
  await rm(snapshot, { recursive: true, force: true });
}
