import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import type { DockerHost } from "../host.ts";

const FILE = "stopped";

/** Notes down that a container's end is meant, for every program of this home. */
export async function markStopped(host: DockerHost, id: SandboxId): Promise<void> {
  await writeFile(path(host, id), "").catch((error: unknown) => {
    // Without an entry there is nobody who would want to know.
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  });
}

export async function unmarkStopped(host: DockerHost, id: SandboxId): Promise<void> {
  await rm(path(host, id), { force: true });
}

export function wasStopped(host: DockerHost, id: SandboxId): boolean {
  return existsSync(path(host, id));
}

function path({ store }: DockerHost, id: SandboxId): string {
  return join(store.directory(id), FILE);
}
