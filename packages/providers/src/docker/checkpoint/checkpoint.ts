import { access } from "node:fs/promises";
import { type CheckpointOptions, type InstanceSpec, SandboxError } from "@sandpiper/core";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { volumesOf } from "../storage/volumes.ts";
import { flattenImage, unpackImage } from "./checkpoint-files.ts";
import { commitContainer, removeImage } from "./checkpoint-image.ts";
import { saveVolume } from "./volume-archive.ts";

/** Engines stack at most 128 layers, and each checkpoint of a sandbox that was restored from one adds its own. */
const MAX_LAYERS = 96;

export interface SaveContainerOptions extends CheckpointOptions {
  readonly spec: InstanceSpec;
  readonly home: string;
  readonly directory: string;
  /** With more, all files are saved as a single layer. */
  readonly maxLayers?: number;
}

/**
 * Saves a container as files: its root filesystem, and the volumes that are the sandbox's own. It stands still until all of it
 * is captured, or written if it does not keep running; then it has ended. When this fails the container runs as before.
 */
export async function saveContainer(
  engine: Engine,
  container: Docker.Container,
  options: SaveContainerOptions,
): Promise<void> {
  const { directory, keepsRunning, onCaptured } = options;
  // Nothing need stand still for a directory that is not there.
  await access(directory);
  await requireVisible(engine, container);
  const what = `container ${container.id}`;
  let isHeld = true;
  const goOn = async () => {
    if (isHeld) await engine.call(`unpause ${what}`, () => container.unpause());
    isHeld = false;
  };
  await using undo = new AsyncDisposableStack();
  await engine.call(`pause ${what}`, () => container.pause());
  undo.defer(() => goOn().catch(() => {}));
  const image = await commitContainer(engine, container);
  // What cannot be removed now goes with the sandbox.
  undo.defer(() => removeImage(engine, image).catch(() => {}));
  const isWritten = await capture(engine, container, image, options);
  if (keepsRunning) {
    await goOn();
    onCaptured?.();
  }
  if (!isWritten) {
    const doing = `write the image of ${what}`;
    await engine.call(doing, async (docker) => unpackImage(await docker.getImage(image).get(), directory));
  }
  if (keepsRunning) return;
  // Docker ends what stands still at once, Podman only what goes on.
  if (engine.info.isPodman) await goOn();
  await engine.call(`end ${what}`, () => container.kill());
  isHeld = false;
}

/** What must be read while the container stands still. True: that was everything. */
async function capture(
  engine: Engine,
  container: Docker.Container,
  image: string,
  { spec, home, directory, maxLayers = MAX_LAYERS }: SaveContainerOptions,
): Promise<boolean> {
  for (const volume of volumesOf(spec, home)) {
    if (!volume.isShared) await saveVolume(engine, container, volume, directory);
  }
  return await engine.call(`write the files of container ${container.id}`, async (docker) => {
    const { RootFS, Architecture, Os, Created, Config } = await docker.getImage(image).inspect();
    if ((RootFS.Layers?.length ?? 0) <= maxLayers) return false;
    const config = { architecture: Architecture, os: Os, created: Created, config: Config };
    await flattenImage(await container.export(), directory, config);
    return true;
  });
}

/** gVisor, as it is installed, keeps what is written to the root filesystem in one file, and the engine would save the image alone. */
async function requireVisible(engine: Engine, container: Docker.Container): Promise<void> {
  const { Id, HostConfig } = await engine.call(`look at container ${container.id}`, () => container.inspect());
  if (!(await hasFile(engine, container, `/.gvisor.filestore.${Id}`))) return;
  throw new SandboxError("failed_precondition", {
    reason: "runtime_hides_files",
    message: `container ${container.id} cannot be saved: its runtime ${HostConfig.Runtime} does not show the engine what is written to the root filesystem`,
    hint: "register that runtime with the argument --overlay2=none, or choose another one for the docker provider",
  });
}

async function hasFile(engine: Engine, container: Docker.Container, path: string): Promise<boolean> {
  try {
    const doing = `look for ${path} in container ${container.id}`;
    const answer: NodeJS.ReadableStream = await engine.call(doing, () => container.infoArchive({ path }));
    // Its connection is of use again only when it was read.
    answer.resume();
    return true;
  } catch (error) {
    if (error instanceof SandboxError && error.code === "not_found") return false;
    throw error;
  }
}
