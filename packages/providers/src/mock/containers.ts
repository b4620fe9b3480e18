import {
  type CacheVolume,
  type ContainerEvent,
  type ContainerInfo,
  type Containers,
  type DestroyOptions,
  type InstanceSpec,
  type KeptVolumes,
  type PullOptions,
  SandboxError,
} from "@sandpiper/core";
import { portKey, type SandboxId } from "@sandpiper/protocol";

const DEFAULT_IMAGE = "mock:default";

interface Container {
  readonly spec: InstanceSpec;
  readonly image: string;
  readonly imageId: string;
}

/** An engine in memory for a mock with containers: it has images, volumes and caches, and runs nothing. */
export class MockContainers implements Containers {
  /** The engine's image of each reference; tests tag images here. */
  readonly images: Map<string, string>;
  /** The registry's image of each reference. */
  readonly registry = new Map<string, string>();
  /** The volumes of sandboxes, also of removed ones; each has its own number. */
  readonly volumes: Map<SandboxId, number> = new Map();
  readonly caches = new Map<string, Pick<CacheVolume, "project" | "name">>();
  /** Every pull that reached the registry. */
  readonly pulls: string[] = [];
  /** Awaited in the middle of each pull. */
  beforePull: (signal: AbortSignal) => Promise<void> = async () => {};
  readonly kept: KeptVolumes = { list: async () => this.#listKept(), remove: async (name) => this.#removeKept(name) };
  readonly #made = new Map<SandboxId, Container>();
  #volumesMade = 0;

  constructor(images: Readonly<Record<string, string>> = {}) {
    this.images = new Map(Object.entries({ [DEFAULT_IMAGE]: "sha256:default", ...images }));
  }

  addressesOf(spec: InstanceSpec): Record<string, string> {
    const addresses = (spec.container?.ports ?? []).map((port) => {
      const { container, host, address } = typeof port === "number" ? { container: port } : port;
      return [portKey(port), `${address ?? "127.0.0.1"}:${host ?? 40_000 + container}`];
    });
    return Object.fromEntries(addresses);
  }

  async add(spec: InstanceSpec, options: Pick<PullOptions, "signal" | "onProgress">): Promise<void> {
    const {
      image = DEFAULT_IMAGE,
      imagePullPolicy: policy = "missing",
      project = "default",
      caches = [],
    } = spec.container ?? {};
    await this.pull(image, { ...options, policy });
    this.#made.set(spec.id, { spec, image, imageId: this.images.get(image) as string });
    if (!this.volumes.has(spec.id)) this.volumes.set(spec.id, ++this.#volumesMade);
    for (const { name } of caches) this.caches.set(`${project}/${name}`, { project, name });
  }

  drop(id: SandboxId, { keepsVolumes = false }: DestroyOptions = {}): void {
    this.#made.delete(id);
    if (!keepsVolumes) this.volumes.delete(id);
  }

  async get(id: SandboxId): Promise<ContainerInfo> {
    const { spec, image, imageId } = this.#container(id);
    const state = { state: "running", createdAt: new Date(0), exit: undefined } as const;
    return { id, image, imageId, addresses: this.addressesOf(spec), ...state };
  }

  async start(id: SandboxId): Promise<void> {
    this.#container(id);
  }

  async stop(id: SandboxId): Promise<void> {
    this.#container(id);
  }

  async *watch(): AsyncGenerator<ContainerEvent> {
    const at = new Date(0);
    for (const id of this.#made.keys()) yield { id, kind: "running", isReplay: true, at, exit: undefined };
  }

  async pull(image: string, { policy, signal, onProgress }: PullOptions): Promise<void> {
    if (policy !== "always" && this.images.has(image)) return;
    const found = policy === "never" ? undefined : this.registry.get(image);
    if (found === undefined) {
      throw new SandboxError("image_not_found", { message: `image ${image} not found`, hint: "use an existing image" });
    }
    this.pulls.push(image);
    const layer = { image, layer: "layer-1", totalBytes: 100 };
    onProgress?.({ ...layer, status: "downloading", doneBytes: 40 });
    await this.beforePull(signal);
    signal.throwIfAborted();
    onProgress?.({ ...layer, status: "complete", doneBytes: 100 });
    this.images.set(image, found);
  }

  async isOutdated(id: SandboxId): Promise<boolean> {
    const { image, imageId } = this.#container(id);
    return this.images.get(image) !== imageId;
  }

  async listCaches(): Promise<readonly CacheVolume[]> {
    return [...this.caches.values()].map((cache) => ({ ...cache, sizeBytes: 1024, usedBy: this.#usersOf(cache) }));
  }

  async clearCache(cache: Pick<CacheVolume, "project" | "name">): Promise<void> {
    const { project, name } = cache;
    if (this.#usersOf(cache).length > 0) {
      throw new SandboxError("cache_in_use", { message: `cache ${name} is in use` });
    }
    if (this.caches.delete(`${project}/${name}`)) return;
    throw new SandboxError("no_such_cache", { message: `cache ${name} not found`, details: { project, name } });
  }

  #listKept() {
    const left = [...this.volumes.keys()].filter((sandbox) => !this.#made.has(sandbox));
    return left.map((sandbox) => {
      const name = `sandpiper-data-${sandbox}`;
      const uses = ({ spec: { container } }: Container) => container?.volumes?.some((volume) => volume.name === name);
      const usedBy = [...this.#made.values()].filter(uses).map(({ spec }) => spec.id);
      return { name, sandbox, path: "/.data", sizeBytes: 1024, usedBy };
    });
  }

  #removeKept(name: string): void {
    const found = this.#listKept().find((volume) => volume.name === name);
    if (found === undefined) {
      throw new SandboxError("no_such_volume", {
        message: `kept volume ${name} not found`,
        details: { volume: name },
      });
    }
    const { usedBy } = found;
    if (usedBy.length > 0)
      throw new SandboxError("volume_in_use", { message: `${name} is in use`, details: { usedBy } });
    this.volumes.delete(found.sandbox);
  }

  #usersOf({ project, name }: Pick<CacheVolume, "project" | "name">): SandboxId[] {
    const uses = ({ spec: { container } }: Container) =>
      (container?.project ?? "default") === project && container?.caches?.some((cache) => cache.name === name);
    return [...this.#made.values()].filter(uses).map(({ spec }) => spec.id);
  }

  #container(id: SandboxId): Container {
    const found = this.#made.get(id);
    if (found !== undefined) return found;
    throw new SandboxError("no_such_container", { message: `container ${id} not found` });
  }
}
