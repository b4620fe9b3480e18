import { addAbortSignal } from "node:stream";
import type { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";
import { type EngineImage, resolveImage } from "../image/image.ts";
import { damagedCheckpoint, packImage } from "./checkpoint-files.ts";

/** On every image that was made by saving a sandbox. */
const CHECKPOINT_LABEL = "sandpiper.checkpoint";

/** Whose instance an image is for. */
export interface ImageOwner {
  readonly id: SandboxId;
  readonly home: string;
}

/** What a container's files are at this moment, as an image; gives its id. */
export async function commitContainer(engine: Engine, container: Docker.Container): Promise<string> {
  // The container stands still already.
  const options = { pause: false, changes: `LABEL ${CHECKPOINT_LABEL}=true` };
  const { Id } = await engine.call(`save container ${container.id}`, () => container.commit(options));
  return Id;
}

/** Only this one: what it was made from belongs to others. One that somebody's container is of stays. */
export async function removeImage(engine: Engine, image: string): Promise<void> {
  await engine
    .call(`remove image ${image}`, (docker) => docker.getImage(image).remove({ noprune: true }))
    .catch((error: SandboxError) => {
      if (error.code !== "not_found" && error.code !== "conflict") throw error;
    });
}

/** Has the engine load what a checkpoint's files say, for one instance; gives the image. */
export async function loadImage(
  engine: Engine,
  owner: ImageOwner,
  directory: string,
  signal: AbortSignal,
): Promise<EngineImage> {
  const reference = referenceOf(owner);
  // Once it is sent the engine is waited for: what it does may still have its effect after everything was cleared away.
  const archive = addAbortSignal(signal, await packImage(directory, reference));
  try {
    await engine.call(`load the image of sandbox ${owner.id}`, async (docker) =>
      followLoad(docker, await docker.loadImage(archive)),
    );
  } finally {
    archive.destroy();
  }
  signal.throwIfAborted();
  const image = await resolveImage(engine, reference, signal);
  if (image === undefined) throw damagedCheckpoint(directory, "the engine took its image and does not have it");
  return image;
}

/** What was loaded for an instance, unless another has it too, and what an interrupted checkpoint of it left. */
export async function removeImagesOf(engine: Engine, owner: ImageOwner): Promise<void> {
  await removeImage(engine, referenceOf(owner));
  // Podman finds nothing that has several labels, so the others are compared here.
  const filters = { dangling: ["true"], label: [`${CHECKPOINT_LABEL}=true`] };
  const left = await engine.call(`list images of sandbox ${owner.id}`, (docker) => docker.listImages({ filters }));
  for (const { Id, Labels } of left) {
    if (Labels[label.sandbox] === owner.id && Labels[label.home] === owner.home) await removeImage(engine, Id);
  }
}

/** Forks share an image, and each has a name of its own for it: it goes with the last of them. */
function referenceOf({ id, home }: ImageOwner): string {
  return `sandpiper-checkpoint:${id}-${home}`;
}

/** A failure comes in the middle of an answer that began well. */
function followLoad(docker: Docker, answer: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve, reject) => {
    docker.modem.followProgress(answer, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}
