import {
  type CacheVolume,
  type ContainerEvent,
  type ContainerInfo,
  type Containers,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { ProjectEngine } from "./project-engine.ts";
import type { ProjectEngines } from "./project-engines.ts";
import { watchEngines } from "./watch.ts";

/** Container operations, each forwarded to the machine of the sandbox's project. */
export class VmDockerContainers implements Containers {
  readonly #engines: ProjectEngines;
  readonly #find: (id: SandboxId) => Promise<ProjectEngine | undefined>;

  constructor(engines: ProjectEngines, find: (id: SandboxId) => Promise<ProjectEngine | undefined>) {
    this.#engines = engines;
    this.#find = find;
  }

  get(id: SandboxId): Promise<ContainerInfo> {
    return this.#inEngineOf(id, (containers) => containers.get(id));
  }

  start(id: SandboxId): Promise<void> {
    return this.#inEngineOf(id, (containers) => containers.start(id));
  }

  stop(id: SandboxId, options: { readonly timeoutMs: number }): Promise<void> {
    return this.#inEngineOf(id, (containers) => containers.stop(id, options));
  }

  isOutdated(id: SandboxId): Promise<boolean> {
    return this.#inEngineOf(id, (containers) => containers.isOutdated(id));
  }

  watch(signal: AbortSignal): AsyncIterable<ContainerEvent> {
    return watchEngines(this.#engines, signal);
  }

  /** Does nothing: `create` looks for the image in the project's own machine. */
  async pull(): Promise<void> {}

  async listCaches(): Promise<readonly CacheVolume[]> {
    const found = this.#engines.all.map((engine) => engine.while(() => containersOf(engine).listCaches()));
    return (await Promise.all(found)).flat();
  }

  async clearCache(cache: Pick<CacheVolume, "project" | "name">): Promise<void> {
    const engine = this.#engines.all.find(({ vm }) => vm.projectId === cache.project);
    if (engine === undefined) {
      throw new SandboxError("no_such_cache", {
        message: `cache ${cache.name} of project ${cache.project} does not exist: the project's machine is not running`,
        hint: "list the caches; a project loses its caches when its machine stops",
      });
    }
    await engine.while(() => containersOf(engine).clearCache(cache));
  }

  async #inEngineOf<T>(id: SandboxId, work: (containers: Containers) => Promise<T>): Promise<T> {
    const engine = await this.#find(id);
    if (engine !== undefined) return await engine.while(() => work(containersOf(engine)));
    throw new SandboxError("no_such_container", { message: `sandbox ${id} has no container in any machine` });
  }
}

function containersOf({ provider }: ProjectEngine): Containers {
  if (provider.containers === undefined) throw new Error(`provider ${provider.name} does not support containers`);
  return provider.containers;
}
