import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, lstat, mkdir, readlink, realpath, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { currentOwner } from "../host/process-owner.ts";
import { removeAbandoned, transientName } from "../host/transient-name.ts";
import { hostEtcEntries } from "./host-etc.ts";
import { hostSkeleton } from "./host-skeleton.ts";
import { type Image, maskMounts, readOnlyBinds } from "./image.ts";
import { type ImageEntry, writeImageEntry } from "./image-entry.ts";

/** Top-level directories with programs; most machines have only /usr, and links to it for the others. */
const PROGRAM_DIRECTORIES = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/** Below /usr, but people put configuration with secrets here. */
const PRIVATE_DIRECTORIES = ["/usr/local/etc"];

/** The machine's own programs, read-only, in a root filesystem without any other file of the machine. */
export async function hostImage(stateDirectory: string): Promise<Image> {
  // Holds the shared part, which is rebuilt when a file that it copies changes.
  const imagesDirectory = join(stateDirectory, "gvisor/images");
  const { binds, links } = await findPrograms();
  const root = await buildOnce(imagesDirectory, [...hostSkeleton, ...links, ...hostEtcEntries()]);
  const privateDirectories = [...PRIVATE_DIRECTORIES.filter(existsSync), await realpath(stateDirectory)];
  return { root, mounts: [...readOnlyBinds(binds), ...maskMounts(binds, privateDirectories)] };
}

async function findPrograms(): Promise<{ binds: string[]; links: ImageEntry[] }> {
  const binds: string[] = [];
  const links: ImageEntry[] = [];
  for (const name of PROGRAM_DIRECTORIES) {
    const info = await lstat(`/${name}`).catch(() => undefined);
    if (info?.isSymbolicLink()) links.push({ kind: "link", path: name, target: await readlink(`/${name}`) });
    else if (info?.isDirectory()) binds.push(`/${name}`);
  }
  return { binds, links };
}

/** The directory gets its final name only when it is complete. */
async function buildOnce(imagesDirectory: string, entries: readonly ImageEntry[]): Promise<string> {
  const version = createHash("sha256")
    .update(JSON.stringify(entries.toSorted(byPath)))
    .digest("hex")
    .slice(0, 16);
  const target = join(imagesDirectory, `host-${version}`);
  if (existsSync(target)) return target;
  await mkdir(imagesDirectory, { recursive: true, mode: 0o700 });
  await removeAbandoned(imagesDirectory);
  const draft = join(imagesDirectory, transientName(randomUUID(), await currentOwner()));
  try {
    const [directories, others] = [entries.filter(isDirectory), entries.filter((entry) => !isDirectory(entry))];
    for (const entry of directories) await writeImageEntry(draft, entry);
    await Promise.all(others.map((entry) => writeImageEntry(draft, entry)));
    await chmod(draft, 0o755);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another program may have built the same image in the meantime.
    if (!existsSync(target)) throw error;
  }
  return target;
}

function isDirectory(entry: ImageEntry): boolean {
  return entry.kind === "directory";
}

function byPath(one: ImageEntry, other: ImageEntry): number {
  return one.path < other.path ? -1 : 1;
}
