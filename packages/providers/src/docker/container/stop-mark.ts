import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceStore } from "../../host/instance-store.ts";

const FILE = "stopped";

/** Records that a stop is intended, for every program of this home. */
export async function markStopped(store: InstanceStore, id: SandboxId): Promise<void> {
  await writeFile(path(store, id), "").catch((error: unknown) => {
    // A container without an entry is only ever removed.
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  });
}

export async function unmarkStopped(store: InstanceStore, id: SandboxId): Promise<void> {
  await rm(path(store, id), { force: true });
}

export function wasStopped(store: InstanceStore, id: SandboxId): boolean {
  return existsSync(path(store, id));
}

function path(store: InstanceStore, id: SandboxId): string {
  return join(store.directory(id), FILE);
}
