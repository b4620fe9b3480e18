import { createHash } from "node:crypto";
import { existsSync, globSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeLeftovers } from "../../bench/leftovers.ts";
import { abandonedBed } from "./bed-name.ts";
import { listNamespaces, removeNamespace } from "./namespaces.ts";

/** Removes everything that is named after a bed: processes, sandboxes, mounts, cgroups, namespaces, files. */
export async function removeBed(bed: string): Promise<void> {
  const namespaces = (await listNamespaces()).filter((name) => name.startsWith(`${bed}-`));
  for (const name of namespaces) await removeNamespace(name);
  const directory = bedDirectory(bed);
  await removeLeftovers(directory);
  for (const guard of globSync(join(directory, "*"))
    .map(guardDirectory)
    .filter((path) => existsSync(path))) {
    await removeLeftovers(guard);
    rmSync(guard, { recursive: true, force: true });
  }
  rmSync(directory, { recursive: true, force: true });
}

/** Removes the beds of killed tests. */
export async function removeAbandonedBeds(): Promise<void> {
  const names = [...(await listNamespaces()), ...readdirSync(tmpdir())];
  const beds = new Set(names.map(abandonedBed).filter((bed) => bed !== undefined));
  for (const bed of beds) await removeBed(bed);
}

export function bedDirectory(bed: string): string {
  return join(tmpdir(), bed);
}

/** The directory of a node's lease guard, which is outside the node's home. */
export function guardDirectory(home: string): string {
  return join("/run/sandpiper", createHash("sha256").update(home).digest("hex").slice(0, 16));
}
