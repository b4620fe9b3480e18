import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { type Labels, label } from "../engine/labels.ts";
import type { EngineImage } from "../image/image.ts";
import { removeVolumes, type SandboxVolume, volumesOf } from "../storage/volumes.ts";
import { loadImage } from "./checkpoint-image.ts";
import { requireArchive, restoreVolume } from "./volume-archive.ts";

/** A node that hands a sandbox over removes what it had of it a moment after it gave it away. */
const LEAVING_ROUNDS = 300;
const LEAVING_ROUND_MS = 100;

export interface RestoreOptions {
  readonly spec: InstanceSpec;
  readonly home: string;
  /** With the files of the checkpoint. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

/** Brings an engine to the point where a container of the image that this gives can be made for the sandbox. */
export async function loadCheckpoint(engine: Engine, options: RestoreOptions): Promise<EngineImage> {
  const { spec, home, directory, signal } = options;
  await requireVolumeArchives(options);
  const image = await loadImage(engine, { id: spec.id, home }, directory, signal);
  await untilLeft(engine, options);
  // What an earlier instance of it left is of another time than the rest.
  await removeVolumes(engine, spec.id, home);
  return image;
}

/** Gives a container that is not started yet the files of the sandbox's own volumes. */
export async function fillVolumes(engine: Engine, container: Docker.Container, options: RestoreOptions): Promise<void> {
  for (const volume of ownVolumes(options)) await restoreVolume(engine, container, volume, options);
}

async function requireVolumeArchives(options: RestoreOptions): Promise<void> {
  for (const volume of ownVolumes(options)) await requireArchive(volume, options.directory);
}

function ownVolumes({ spec, home }: RestoreOptions): readonly SandboxVolume[] {
  return volumesOf(spec, home).filter(({ isShared }) => !isShared);
}

/** Where two homes share an engine, what the other one had of the sandbox must be gone: names are the same in both. */
async function untilLeft(engine: Engine, { spec, home, signal }: RestoreOptions): Promise<void> {
  const filters = { label: [`${label.sandbox}=${spec.id}`] };
  for (let round = 0; round < LEAVING_ROUNDS; round++) {
    const [containers, { Volumes }] = await engine.call(`look for what is left of sandbox ${spec.id}`, (docker) =>
      Promise.all([docker.listContainers({ all: true, filters }), docker.listVolumes({ filters })]),
    );
    const owners = [...containers, ...(Volumes ?? [])].map(({ Labels }) => (Labels as Labels | null)?.[label.home]);
    if (owners.every((owner) => owner === home)) return;
    await sleep(LEAVING_ROUND_MS, undefined, { signal });
  }
}
