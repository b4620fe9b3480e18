import {
  type CacheVolume,
  type ContainerEvent,
  type ContainerInfo,
  type Containers,
  type KeptVolumes,
  type PullOptions,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import { containerState, markStopped, unmarkStopped } from "./container/container-state.ts";
import { containerName, inspectContainer } from "./container/inspect-container.ts";
import { addressesOf, startError } from "./container/ports.ts";
import { label } from "./engine/labels.ts";
import { watchContainers } from "./events/watch.ts";
import type { DockerHost } from "./host.ts";
import { resolveImage } from "./image/image.ts";
import { pullImage } from "./image/pull-image.ts";
import { clearCache, listCaches } from "./storage/caches.ts";
import { DockerKeptVolumes } from "./storage/kept-volumes.ts";

export class DockerContainers implements Containers {
  readonly kept: KeptVolumes;
  readonly #findHost: () => Promise<DockerHost>;

  constructor(findHost: () => Promise<DockerHost>) {
    this.#findHost = findHost;
    this.kept = new DockerKeptVolumes(findHost);
  }

  async get(id: SandboxId): Promise<ContainerInfo> {
    const host = await this.#findHost();
    const found = await inspect(host, id);
    const { state, exit } = containerState(host.store, id, found);
    return {
      id,
      state,
      exit,
      addresses: addressesOf(found, host.engine.endpoint.url),
      image: await referenceOf(host, id),
      imageId: found.Image,
      createdAt: new Date(found.Created),
    };
  }

  async start(id: SandboxId): Promise<void> {
    const host = await this.#findHost();
    const { Id } = await inspect(host, id);
    await unmarkStopped(host.store, id);
    try {
      await host.engine.call(`start container ${containerName(id)}`, (docker) => docker.getContainer(Id).start());
    } catch (error) {
      const entry = await host.store.read(id);
      throw entry === undefined ? error : startError(entry.spec, error);
    }
  }

  async stop(id: SandboxId, { timeoutMs }: { readonly timeoutMs: number }): Promise<void> {
    const host = await this.#findHost();
    const { Id } = await inspect(host, id);
    await markStopped(host.store, id);
    const t = Math.ceil(timeoutMs / 1000);
    try {
      await host.engine.call(`stop container ${containerName(id)}`, (docker) => docker.getContainer(Id).stop({ t }));
    } catch (thrown) {
      // A later end of the container is then a crash.
      await unmarkStopped(host.store, id);
      throw thrown;
    }
  }

  async *watch(signal: AbortSignal): AsyncGenerator<ContainerEvent> {
    yield* watchContainers(await this.#findHost(), signal);
  }

  async pull(image: string, options: PullOptions): Promise<void> {
    const { engine } = await this.#findHost();
    await pullImage(engine, image, options);
  }

  async isOutdated(id: SandboxId): Promise<boolean> {
    const host = await this.#findHost();
    const found = await inspect(host, id);
    const now = await resolveImage(host.engine, await referenceOf(host, id));
    // A restored container runs a checkpoint's image; the label names the image that it was created from.
    return now !== undefined && now.id !== (found.Config.Labels[label.image] ?? found.Image);
  }

  async listCaches(): Promise<readonly CacheVolume[]> {
    const { engine, home } = await this.#findHost();
    return await listCaches(engine, home);
  }

  async clearCache(cache: Pick<CacheVolume, "project" | "name">): Promise<void> {
    const { engine, home } = await this.#findHost();
    await clearCache(engine, cache, home);
  }
}

async function inspect(host: DockerHost, id: SandboxId): Promise<Docker.ContainerInspectInfo> {
  const found = await inspectContainer(host, id);
  if (found !== undefined) return found;
  throw new SandboxError("no_such_container", { message: `sandbox ${id} has no container on this engine` });
}

/** The image reference of the sandbox's configuration. */
async function referenceOf(host: DockerHost, id: SandboxId): Promise<string> {
  const entry = await host.store.read(id);
  return entry?.spec.container?.image ?? host.image;
}
