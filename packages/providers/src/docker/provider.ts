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
  type ProviderCapabilities,
  type ProviderStatus,
  SandboxError,
  systemClock,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import { shared } from "../host/shared.ts";
import { stateDirectory } from "../host/state-directory.ts";
import { adoptInstance } from "./adopt-instance.ts";
import { readEarlierProcesses } from "./checkpoint/earlier-processes.ts";
import { fillVolumes, loadCheckpoint } from "./checkpoint/restore.ts";
import { requireNetwork } from "./container/network.ts";
import { requirePorts } from "./container/ports.ts";
import { serviceLabels } from "./container/service.ts";
import { DockerContainers } from "./containers.ts";
import { type DockerHost, type DockerOptions, findDockerHost } from "./host.ts";
import { pullImage } from "./image/pull-image.ts";
import { launchInstance } from "./launch.ts";
import { listInstances } from "./list-instances.ts";
import { probeDocker } from "./probe.ts";
import { removeInstance } from "./remove-instance.ts";
import { requireKeptVolumes } from "./storage/kept-volumes.ts";
import { requireWorkspace } from "./workspace/workspace.ts";

/** Runs sandboxes as containers of Docker or Podman. */
export class DockerProvider implements Provider {
  readonly name = "docker";
  readonly capabilities: ProviderCapabilities = Object.freeze({
    isolation: "container",
    checkpoint: "filesystem",
    // Engines limit a container's disk only on a few filesystems.
    limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: false }),
    supportsAdopt: true,
    supportsUsers: true,
    supportsContainers: true,
    network: "redirected",
  });
  readonly containers = new DockerContainers(() => this.#findHost());
  readonly #options: DockerOptions;
  readonly #clock: Clock;
  readonly #findHost = shared(() => findDockerHost(this.#options, this.#clock));

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
    await requireSupported(host, spec);
    const policy = spec.container?.imagePullPolicy ?? "missing";
    const reference = spec.container?.image ?? host.image;
    const image = await pullImage(host.engine, reference, { policy, signal, onProgress: options.onProgress });
    // Fails before anything is created if the image cannot run as a service.
    serviceLabels(spec, image);
    await this.#addEntry(host, spec, signal);
    return await launchInstance(host, { spec, image, signal });
  }

  /** A prepared instance has an entry but no container yet: the checkpoint brings the image that a container needs. */
  async prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    await requireSupported(host, spec);
    await this.#addEntry(host, spec, signal);
    // Keeps the volumes: an earlier instance of the same sandbox left them.
    const destroy = () => removeInstance(host, spec.id, { keepsVolumes: true });
    return {
      id: spec.id,
      restore: async (directory, abort) => {
        const options = { spec, home: host.home, directory, signal: abort };
        const loading = Promise.all([readEarlierProcesses(directory), loadCheckpoint(host.engine, options)]);
        const [earlierProcesses, image] = await loading.catch(async (error: unknown) => {
          await destroy();
          throw error;
        });
        const onCreated = (container: Docker.Container) => fillVolumes(host.engine, container, options);
        return await launchInstance(host, { spec, image, signal: abort, onCreated, earlierProcesses });
      },
      destroy,
    };
  }

  /** A checkpoint of files needs the same processor. It does not contain the agent: the restoring host brings its own. */
  async checkpointRequirements(): Promise<CheckpointRequirements> {
    const { os, architecture } = (await this.#findHost()).engine.info;
    return { os, architecture };
  }

  async list(): Promise<readonly InstanceRecord[]> {
    return await listInstances(await this.#findHost());
  }

  async adopt(id: SandboxId): Promise<Instance> {
    return await adoptInstance(await this.#findHost(), id);
  }

  async remove(id: SandboxId, options?: DestroyOptions): Promise<void> {
    await removeInstance(await this.#findHost(), id, options);
  }

  /** Writes the entry before anything is created, so that a later program finds leftovers. */
  async #addEntry({ store }: DockerHost, spec: InstanceSpec, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await store.add({ spec, createdAt: this.#clock.now().toISOString() }, {});
  }
}

/** Rejects options that the engine would reject, or that are not allowed, before anything is created or pulled. */
async function requireSupported(host: DockerHost, spec: InstanceSpec): Promise<void> {
  if (spec.rootfs !== "host") {
    throw new SandboxError("rootfs_not_supported", {
      message: `provider docker does not support root filesystem ${JSON.stringify(spec.rootfs)}: it uses images`,
      hint: "set an image such as python:3.13-slim, or use provider gvisor",
    });
  }
  requirePorts(spec, host);
  requireWorkspace(spec);
  await requireNetwork(host.engine, spec, host);
  await requireKeptVolumes(host, spec);
}
