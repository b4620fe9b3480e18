import { createReadStream } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { addAbortSignal } from "node:stream";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import type { SandboxVolume } from "../storage/volumes.ts";
import { damagedCheckpoint, writeContent } from "./checkpoint-files.ts";

/** Archives a volume into the directory, through a container that mounts it. */
export async function saveVolume(
  engine: Engine,
  container: Docker.Container,
  { target }: SandboxVolume,
  directory: string,
): Promise<void> {
  await engine.call(`read ${target} of container ${container.id}`, async () => {
    // The dot makes names in the archive relative to the volume.
    await writeContent(await container.getArchive({ path: `${target}/.` }), archivePath(directory, target));
  });
}

/** Throws if the directory has no archive of the volume. */
export async function requireArchive({ target }: SandboxVolume, directory: string): Promise<void> {
  await access(archivePath(directory, target)).catch((cause: unknown) => {
    throw damagedCheckpoint(directory, `the files of ${target} are missing`, cause);
  });
}

/** Restores the files of an empty volume with their owners and modes. */
export async function restoreVolume(
  engine: Engine,
  container: Docker.Container,
  { target }: SandboxVolume,
  { directory, signal }: { readonly directory: string; readonly signal: AbortSignal },
): Promise<void> {
  await engine.call(`write ${target} of container ${container.id}`, async () => {
    const archive = addAbortSignal(signal, createReadStream(archivePath(directory, target)));
    try {
      await container.putArchive(archive, { path: target });
    } finally {
      archive.destroy();
    }
  });
}

function archivePath(directory: string, target: string): string {
  return join(directory, `volume${target.replaceAll(/[^A-Za-z0-9]+/g, "-")}.tar`);
}
