import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import { loadImage } from "./checkpoint-image.ts";
import type { Engine } from "./engine.ts";
import { type Labels, label } from "./labels.ts";
import { restoreVolume } from "./volume-archive.ts";
import { removeVolumes, volumesOf } from "./volumes.ts";

/** A node that hands a sandbox over removes what it had of it a moment after it gave it away. */
const LEAVING_ROUNDS = 300;
const LEAVING_ROUND_MS = 100;

export interface RestoreContainerOptions {
  readonly spec: InstanceSpec;
  readonly home: string;
  /** With the files of the checkpoint. */
  readonly directory: string;
  readonly signal: AbortSignal;
  /** Makes the sandbox's volumes and its container from an image, and does not start it. */
  readonly create: (imageId: string) => Promise<Docker.Container>;
}

/** From the files of a checkpoint to a container that has only to be started. On failure the caller removes what there is. */
export async function restoreContainer(engine: Engine, options: RestoreContainerOptions): Promise<Docker.Container> {
  const { spec, home, directory, signal, create } = options;
  const imageId = await loadImage(engine, { id: spec.id, home }, directory, signal);
  await untilLeft(engine, options);
  // What an earlier instance of it left is of another time than the rest.
  await removeVolumes(engine, spec.id, home);
  const container = await create(imageId);
  for (const volume of volumesOf(spec, home)) {
    if (!volume.isShared) await restoreVolume(engine, container, volume, directory, signal);
  }
  return container;
}

/** Where two homes share an engine, what the other one had of the sandbox must be gone: names are the same in both. */
async function untilLeft(
  engine: Engine,
  { spec, home, signal }: Pick<RestoreContainerOptions, "spec" | "home" | "signal">,
): Promise<void> {
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
