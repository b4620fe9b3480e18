import { type CheckpointOptions, type InstanceSpec, SandboxError } from "@sandpiper/core";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { volumesOf } from "../storage/volumes.ts";
import { flattenImage, unpackImage } from "./checkpoint-files.ts";
import { commitContainer, removeImage } from "./checkpoint-image.ts";
import { writeEarlierProcesses } from "./earlier-processes.ts";
import { saveVolume } from "./volume-archive.ts";

/** Engines support at most 128 layers, and each checkpoint of a restored sandbox adds one. */
const MAX_LAYERS = 96;

export interface SaveContainerOptions extends CheckpointOptions {
  readonly spec: InstanceSpec;
  readonly home: string;
  readonly directory: string;
  /** Above this number, the checkpoint stores all files as a single layer. */
  readonly maxLayers?: number;
}

/**
 * Saves a container's root filesystem and the sandbox's own volumes as files. The container is paused until they are captured,
 * or, if it does not keep running, until they are written and it is killed. On failure the container continues to run.
 */
export async function saveContainer(
  engine: Engine,
  container: Docker.Container,
  options: SaveContainerOptions,
): Promise<void> {
  const { directory, keepsRunning, onCaptured, processes = [] } = options;
  // Fails before the pause if the directory is missing.
  await writeEarlierProcesses(directory, processes);
  await requireVisible(engine, container);
  const what = `container ${container.id}`;
  let isPaused = true;
  const unpause = async () => {
    if (isPaused) await engine.call(`unpause ${what}`, () => container.unpause());
    isPaused = false;
  };
  await using undo = new AsyncDisposableStack();
  await engine.call(`pause ${what}`, () => container.pause());
  undo.defer(() => unpause().catch(() => {}));
  const image = await commitContainer(engine, container);
  // If this fails, the image is removed with the sandbox.
  undo.defer(() => removeImage(engine, image).catch(() => {}));
  const isWritten = await capture(engine, container, image, options);
  if (keepsRunning) {
    await unpause();
    onCaptured?.();
  }
  if (!isWritten) {
    const doing = `write the image of ${what}`;
    await engine.call(doing, async (docker) => unpackImage(await docker.getImage(image).get(), directory));
  }
  if (keepsRunning) return;
  // Podman cannot kill a paused container; Docker can.
  if (engine.info.isPodman) await unpause();
  await engine.call(`end ${what}`, () => container.kill());
  isPaused = false;
}

/** Reads what must be read while the container is paused; returns true if the checkpoint is then complete. */
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

/** By default gVisor keeps writes to the root filesystem in a separate file, and the engine would save the image without them. */
async function requireVisible(engine: Engine, container: Docker.Container): Promise<void> {
  const { Id, HostConfig } = await engine.call(`inspect container ${container.id}`, () => container.inspect());
  if (!(await hasFile(engine, container, `/.gvisor.filestore.${Id}`))) return;
  throw new SandboxError("runtime_hides_files", {
    message: `cannot save container ${container.id}: its runtime ${HostConfig.Runtime} hides writes to the root filesystem from the engine`,
    hint: "register that runtime with the argument --overlay2=none, or choose another runtime for the docker provider",
  });
}

async function hasFile(engine: Engine, container: Docker.Container, path: string): Promise<boolean> {
  const doing = `stat ${path} in container ${container.id}`;
  const answer: NodeJS.ReadableStream | undefined = await engine.find(doing, () => container.infoArchive({ path }));
  // Reading the response frees its connection.
  answer?.resume();
  return answer !== undefined;
}
