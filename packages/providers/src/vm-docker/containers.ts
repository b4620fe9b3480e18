import {
  type CacheVolume,
  type ContainerEvent,
  type ContainerInfo,
  type Containers,
  type PullOptions,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { ProjectDisks } from "./disk/project-disks.ts";
import type { MachineImages } from "./image/machine-images.ts";
import type { ProjectEngine } from "./project-engine.ts";
import type { ProjectEngines } from "./project-engines.ts";
import { watchEngines } from "./watch.ts";

export interface VmDockerContainersOptions {
  readonly images: MachineImages;
  readonly disks: ProjectDisks;
  readonly find: (id: SandboxId) => Promise<ProjectEngine | undefined>;
}

/** Container operations, each forwarded to the machine of the sandbox's project. */
export class VmDockerContainers implements Containers {
  readonly #engines: ProjectEngines;
  readonly #options: VmDockerContainersOptions;

  constructor(engines: ProjectEngines, options: VmDockerContainersOptions) {
    this.#engines = engines;
    this.#options = options;
  }

  get(id: SandboxId): Promise<ContainerInfo> {
    return this.#inEngineOf(id, async (containers, { ports }) => {
      const info = await containers.get(id);
      // A stopped container has no addresses.
      const inside = Object.keys(info.addresses);
      const addresses = Object.entries(ports.of(id)).filter(([port]) => inside.includes(port));
      return { ...info, addresses: Object.fromEntries(addresses) };
    });
  }

  start(id: SandboxId): Promise<void> {
    return this.#inEngineOf(id, (containers) => containers.start(id));
  }

  stop(id: SandboxId, options: { readonly timeoutMs: number }): Promise<void> {
    return this.#inEngineOf(id, (containers) => containers.stop(id, options));
  }

  /** Compares with the image that the host pulled last. */
  isOutdated(id: SandboxId): Promise<boolean> {
    return this.#inEngineOf(id, async (containers, { vm, gone }) => {
      const { image } = await containers.get(id);
      await this.#options.images.refresh(vm, image, gone);
      return await containers.isOutdated(id);
    });
  }

  watch(signal: AbortSignal): AsyncIterable<ContainerEvent> {
    return watchEngines(this.#engines, signal);
  }

  /** Pulls the image to this host; `create` loads it into the project's machine. */
  pull(image: string, options: PullOptions): Promise<void> {
    return this.#options.images.pull(image, options);
  }

  /** The caches of projects whose machine does not run are listed as last noted. */
  async listCaches(): Promise<readonly CacheVolume[]> {
    const running = await Promise.all(this.#engines.all.map((engine) => this.noteCaches(engine)));
    const projects = new Set(this.#engines.all.map(({ vm }) => vm.projectId));
    const others = (await this.#options.disks.list()).filter(({ projectId }) => !projects.has(projectId));
    const stopped = others.flatMap(({ projectId, caches }) =>
      caches.map((cache) => ({ ...cache, project: projectId, usedBy: [] })),
    );
    return [...running.flat(), ...stopped];
  }

  /** If the project's machine does not run, its next one removes the cache. */
  async clearCache(cache: Pick<CacheVolume, "project" | "name">): Promise<void> {
    const engine = this.#engines.all.find(({ vm }) => vm.projectId === cache.project);
    if (engine !== undefined) {
      await engine.while(() => containersOf(engine).clearCache(cache));
      await this.noteCaches(engine);
    } else if (!(await this.#options.disks.clear(cache.project, cache.name))) {
      throw new SandboxError("no_such_cache", {
        message: `cache ${cache.name} of project ${cache.project} does not exist`,
        hint: "list the caches; the first sandbox that uses a cache creates it",
      });
    }
  }

  /** Removes the caches that were cleared while no machine of the project ran. */
  async clearPending(engine: ProjectEngine): Promise<void> {
    const { projectId: project } = engine.vm;
    await this.#options.disks.removeCleared(project, async (name) => {
      await containersOf(engine)
        .clearCache({ project, name })
        .catch((thrown: unknown) => {
          if (SandboxError.from(thrown).code !== "not_found") throw thrown;
        });
    });
  }

  /** Lists the caches of a running machine, and notes those that outlive it. */
  async noteCaches(engine: ProjectEngine): Promise<readonly CacheVolume[]> {
    const caches = await engine.while(() => containersOf(engine).listCaches());
    const { keepsVolumes = false, projectId } = engine.vm;
    if (keepsVolumes) await this.#options.disks.note(projectId, caches);
    return caches;
  }

  async #inEngineOf<T>(id: SandboxId, work: (containers: Containers, engine: ProjectEngine) => Promise<T>): Promise<T> {
    const engine = await this.#options.find(id);
    if (engine !== undefined) return await engine.while(() => work(containersOf(engine), engine));
    throw new SandboxError("no_such_container", { message: `sandbox ${id} has no container in any machine` });
  }
}

function containersOf({ provider }: ProjectEngine): Containers {
  if (provider.containers === undefined) throw new Error(`provider ${provider.name} does not support containers`);
  return provider.containers;
}
