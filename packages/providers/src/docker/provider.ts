import { availableParallelism } from "node:os";
import {
  type CheckpointRequirements,
  type Clock,
  type CreateInstanceOptions,
  type DestroyOptions,
  type Instance,
  type InstanceRecord,
  type InstanceSpec,
  type PreparedInstance,
  type Provider,
  type ProviderStatus,
  SandboxError,
  systemClock,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { Semaphore } from "../host/semaphore.ts";
import { stateDirectory } from "../host/state-directory.ts";
import { adoptInstance } from "./adopt-instance.ts";
import { dockerCapabilities } from "./capabilities.ts";
import { checkpointRequirements } from "./checkpoint-requirements.ts";
import { type DockerHost, type DockerOptions, findDockerHost } from "./host.ts";
import type { DockerInstance } from "./instance.ts";
import { launchInstance } from "./launch.ts";
import { listInstances } from "./list-instances.ts";
import { requireNetwork } from "./network.ts";
import { publishedPorts } from "./ports.ts";
import { DockerPrepared } from "./prepared.ts";
import { probeDocker } from "./probe.ts";
import { pullImage } from "./pull-image.ts";
import { removeInstance } from "./remove-instance.ts";
import { cloneWorkspace, requireWorkspace } from "./workspace.ts";

/** More of them at once only make each of them slower: an engine does most of it one after the other. */
const BOOTS_PER_PROCESSOR = 2;

/** Sandboxes as containers of an engine: Docker, or Podman. */
export class DockerProvider implements Provider {
  readonly name = "docker";
  readonly capabilities = dockerCapabilities;
  readonly #options: DockerOptions;
  readonly #clock: Clock;
  readonly #boots = new Semaphore(BOOTS_PER_PROCESSOR * availableParallelism());
  /** Those of this program that have not ended. */
  readonly #instances = new Map<SandboxId, DockerInstance>();
  #host: Promise<DockerHost> | undefined;

  constructor({ clock = systemClock, ...options }: Partial<DockerOptions> & { readonly clock?: Clock } = {}) {
    this.#options = { stateDirectory: stateDirectory(), ...options };
    this.#clock = clock;
  }

  probe(): Promise<ProviderStatus> {
    return probeDocker(this.#options);
  }

  async create(spec: InstanceSpec, signal: AbortSignal, options: CreateInstanceOptions = {}): Promise<Instance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    await requirePossible(host, spec);
    const policy = spec.container?.imagePullPolicy ?? "missing";
    const reference = spec.container?.image ?? host.image;
    const image = await pullImage(host.engine, reference, { policy, signal, onProgress: options.onProgress });
    const boot = async () => {
      signal.throwIfAborted();
      await host.store.add({ spec, createdAt: this.#clock.now().toISOString() }, {});
      return await launchInstance(host, { spec, image, signal });
    };
    const instance = this.#keep(await this.#boots.run(boot, signal));
    // Outside of the turn, since it takes as long as the repository is large.
    await cloneWorkspace(host.engine, spec, { container: instance.containerId, signal }).catch(
      async (error: unknown) => {
        await instance.destroy();
        throw error;
      },
    );
    return instance;
  }

  async prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    await requirePossible(host, spec);
    await host.store.add({ spec, createdAt: this.#clock.now().toISOString() }, {});
    return new DockerPrepared(host, spec, (instance) => this.#keep(instance));
  }

  async checkpointRequirements(): Promise<CheckpointRequirements> {
    const { engine } = await this.#findHost();
    return checkpointRequirements(engine);
  }

  async list(): Promise<readonly InstanceRecord[]> {
    return await listInstances(await this.#findHost());
  }

  async adopt(id: SandboxId): Promise<Instance> {
    const host = await this.#findHost();
    return this.#keep(await adoptInstance(host, id, { isFree: !this.#instances.has(id) }));
  }

  async remove(id: SandboxId, options?: DestroyOptions): Promise<void> {
    await removeInstance(await this.#findHost(), id, options);
  }

  #keep(instance: DockerInstance): DockerInstance {
    this.#instances.set(instance.id, instance);
    instance.exited.then(() => {
      if (this.#instances.get(instance.id) === instance) this.#instances.delete(instance.id);
    });
    return instance;
  }

  #findHost(): Promise<DockerHost> {
    this.#host ??= findDockerHost(this.#options, this.#clock).catch((error: unknown) => {
      this.#host = undefined;
      throw error;
    });
    return this.#host;
  }
}

/** What the engine would refuse, or must not be asked for, is refused before anything is made or pulled. */
async function requirePossible(host: DockerHost, spec: InstanceSpec): Promise<void> {
  if (spec.rootfs !== "host") {
    throw new SandboxError("invalid_argument", {
      reason: "rootfs_not_supported",
      message: `the provider docker cannot use the root filesystem ${JSON.stringify(spec.rootfs)}: it has images`,
      hint: "name an image such as python:3.13-slim, or use the provider gvisor",
    });
  }
  publishedPorts(spec);
  requireWorkspace(spec);
  await requireNetwork(host.engine, spec, host);
}
