import { addAbortSignal } from "node:stream";
import type { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";
import { type EngineImage, resolveImage } from "../image/image.ts";
import { damagedCheckpoint, packImage } from "./checkpoint-files.ts";

/** Marks every image that a checkpoint created. */
const CHECKPOINT_LABEL = "sandpiper.checkpoint";

/** The instance that an image is for. */
export interface ImageOwner {
  readonly id: SandboxId;
  readonly home: string;
}

/** Commits the current files of a container as an image, and returns the image's id. */
export async function commitContainer(engine: Engine, container: Docker.Container): Promise<string> {
  // The container is already paused.
  const options = { pause: false, changes: `LABEL ${CHECKPOINT_LABEL}=true` };
  const { Id } = await engine.call(`save container ${container.id}`, () => container.commit(options));
  return Id;
}

/** Removes only this image, not its parents, and keeps one that a container uses. */
export async function removeImage(engine: Engine, image: string): Promise<void> {
  await engine
    .find(`remove image ${image}`, (docker) => docker.getImage(image).remove({ noprune: true }))
    .catch((error: SandboxError) => {
      if (error.code !== "conflict") throw error;
    });
}

/** Loads a checkpoint's image into the engine for one instance. */
export async function loadImage(
  engine: Engine,
  owner: ImageOwner,
  directory: string,
  signal: AbortSignal,
): Promise<EngineImage> {
  const reference = referenceOf(owner);
  // The abort ends only the upload: an aborted load could still take effect after the clean-up.
  const archive = addAbortSignal(signal, await packImage(directory, { reference, labels: ownerLabels(owner) }));
  try {
    await engine.call(`load the image of sandbox ${owner.id}`, async (docker) =>
      followLoad(docker, await docker.loadImage(archive)),
    );
  } finally {
    archive.destroy();
  }
  signal.throwIfAborted();
  const image = await resolveImage(engine, reference, signal);
  if (image === undefined) throw damagedCheckpoint(directory, "the engine loaded its image but does not have it");
  return image;
}

/** Removes the image loaded for an instance, and the leftovers of its interrupted checkpoints. */
export async function removeImagesOf(engine: Engine, owner: ImageOwner): Promise<void> {
  await removeImage(engine, referenceOf(owner));
  // An engine lists and removes an unnamed image only after those that were committed on top of it.
  const tried = new Set<string>();
  for (;;) {
    const left = (await listUnnamed(engine, owner)).filter((id) => !tried.has(id));
    if (left.length === 0) return;
    for (const id of left) {
      tried.add(id);
      await removeImage(engine, id);
    }
  }
}

/** A load under the same reference, or a removal while an image on top of it existed, leaves an image without a name. */
async function listUnnamed(engine: Engine, owner: ImageOwner): Promise<readonly string[]> {
  // Podman cannot filter images by several labels.
  const filters = { dangling: ["true"], label: [`${CHECKPOINT_LABEL}=true`] };
  const found = await engine.call(`list images of sandbox ${owner.id}`, (docker) => docker.listImages({ filters }));
  const wanted = Object.entries(ownerLabels(owner));
  return found.filter(({ Labels }) => wanted.every(([name, value]) => Labels[name] === value)).map(({ Id }) => Id);
}

function ownerLabels({ id, home }: ImageOwner): Readonly<Record<string, string>> {
  return { [CHECKPOINT_LABEL]: "true", [label.sandbox]: id, [label.home]: home };
}

function referenceOf({ id, home }: ImageOwner): string {
  return `sandpiper-checkpoint:${id}-${home}`;
}

/** Rejects on an error in the middle of a response that began with status 200. */
function followLoad(docker: Docker, answer: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve, reject) => {
    docker.modem.followProgress(answer, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}
