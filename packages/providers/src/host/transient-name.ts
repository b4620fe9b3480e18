import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { currentOwner, isOwnerAlive, type ProcessOwner } from "./process-owner.ts";

const PATTERN = /~(\d+)~(\d+)$/;

/** A name for something that is being made or removed, which says by whom: what a dead program left is told apart. */
export function transientName(name: string, { pid, startTicks }: ProcessOwner): string {
  return `${name}~${pid}~${startTicks}`;
}

/** Removes everything in a directory that a program which is no more was making or removing. */
export async function removeAbandoned(directory: string): Promise<void> {
  const names = await findAbandoned(directory);
  await Promise.all(names.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}

/** The names of what is left of it. */
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
