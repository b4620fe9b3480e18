import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { type Labels, label } from "../engine/labels.ts";
import type { EngineImage } from "../image/image.ts";
import { removeVolumes, type SandboxVolume, volumesOf } from "../storage/volumes.ts";
import { loadImage } from "./checkpoint-image.ts";
import { requireArchive, restoreVolume } from "./volume-archive.ts";

/** After a handoff, the source node removes its container and volumes shortly after the target has the lease. */
const REMOVAL_ROUNDS = 300;
const REMOVAL_ROUND_MS = 100;

export interface RestoreOptions {
  readonly spec: InstanceSpec;
  readonly home: string;
  /** Contains the files of the checkpoint. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

/** Loads a checkpoint into the engine; the caller creates the container from the returned image. */
export async function loadCheckpoint(engine: Engine, options: RestoreOptions): Promise<EngineImage> {
  const { spec, home, directory, signal } = options;
  signal.throwIfAborted();
  for (const volume of ownVolumes(options)) await requireArchive(volume, directory);
  const image = await loadImage(engine, { id: spec.id, home }, directory, signal);
  await untilOthersRemoved(engine, options);
  // Volumes of an earlier instance do not match the checkpoint.
  await removeVolumes(engine, spec.id, home);
  return image;
}

/** Fills the sandbox's own volumes through a container that has not started yet. */
export async function fillVolumes(engine: Engine, container: Docker.Container, options: RestoreOptions): Promise<void> {
  for (const volume of ownVolumes(options)) await restoreVolume(engine, container, volume, options);
}

function ownVolumes({ spec, home }: RestoreOptions): readonly SandboxVolume[] {
  return volumesOf(spec, home).filter(({ isShared }) => !isShared);
}

/** Waits until no other home on the same engine has containers or volumes of the sandbox: their names are the same. */
async function untilOthersRemoved(engine: Engine, { spec, home, signal }: RestoreOptions): Promise<void> {
  const filters = { label: [`${label.sandbox}=${spec.id}`] };
  for (let round = 0; round < REMOVAL_ROUNDS; round++) {
    const [containers, { Volumes }] = await engine.call(`list containers and volumes of sandbox ${spec.id}`, (docker) =>
      Promise.all([docker.listContainers({ all: true, filters }), docker.listVolumes({ filters })]),
    );
    const owners = [...containers, ...(Volumes ?? [])].map(({ Labels }) => (Labels as Labels | null)?.[label.home]);
    if (owners.every((owner) => owner === home)) return;
    await sleep(REMOVAL_ROUND_MS, undefined, { signal });
  }
}
