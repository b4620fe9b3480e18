import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { currentOwner, isOwnerAlive, type ProcessOwner } from "./process-owner.ts";

const PATTERN = /~(\d+)~(\d+)$/;

/**
 * A name for something that is being made or removed. It names the program, so that leftovers of a dead program are
 * recognized.
 */
export function transientName(name: string, { pid, startTicks }: ProcessOwner): string {
  return `${name}~${pid}~${startTicks}`;
}

/** Removes everything in a directory that a dead program was making or removing. */
export async function removeAbandoned(directory: string): Promise<void> {
  const names = await findAbandoned(directory);
  await Promise.all(names.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}

/** The names of such leftovers. */
export async function findAbandoned(directory: string): Promise<string[]> {
  const { bootId } = await currentOwner();
  const names = await readdir(directory).catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      const [, pid, startTicks] = PATTERN.exec(name) ?? [];
      if (pid === undefined) return [];
      return (await isOwnerAlive({ pid: Number(pid), startTicks: Number(startTicks), bootId })) ? [] : [name];
    }),
  );
  return found.flat();
}
