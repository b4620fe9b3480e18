import {
  type CheckpointRequirements,
  type Clock,
  type ContainerOptions,
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
import { shared } from "../host/shared.ts";
import { VmDockerContainers } from "./containers.ts";
import type { ProjectDisks } from "./disk/project-disks.ts";
import type { MachineImages } from "./image/machine-images.ts";
import { VmDockerInstance } from "./instance.ts";
import { VmDockerMachines } from "./machines.ts";
import { ProjectEngine } from "./project-engine.ts";
import { ProjectEngines } from "./project-engines.ts";
import { requireDial } from "./published-ports.ts";
import { requireProject } from "./requirements.ts";
import type { ProjectVms } from "./vm/project-vms.ts";
import type { Vm } from "./vm/vm-driver.ts";
import type { HostWorkspaces } from "./workspace/host-workspaces.ts";

/** Node.js names of processors, and their names in images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

export interface VmDockerProviderOptions {
  readonly vms: ProjectVms;
  /** Checks whether this host can run machines. */
  readonly probe: () => Promise<ProviderStatus>;
  /** Creates the provider for the engine of one machine. */
  readonly createEngineProvider: (vm: Vm, clock: Clock) => Provider;
  readonly images: MachineImages;
  readonly workspaces: Pick<HostWorkspaces, "require">;
  readonly disks: ProjectDisks;
  /** For sandboxes that set no image. */
  readonly defaultImage: string;
  readonly clock?: Clock | undefined;
}

/** Runs sandboxes as containers in virtual machines: one machine for each project, one container for each sandbox. */
export class VmDockerProvider implements Provider {
  readonly name = "vm-docker";
  readonly capabilities: ProviderCapabilities = Object.freeze({
    isolation: "vm",
    checkpoint: "filesystem",
    // All containers of a machine share its disk.
    limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: false }),
    supportsAdopt: true,
    supportsUsers: true,
    supportsContainers: true,
    network: "redirected",
  });
  readonly containers: VmDockerContainers;
  readonly probe: () => Promise<ProviderStatus>;
  readonly machines: VmDockerMachines;
  readonly #vms: ProjectVms;
  readonly #images: MachineImages;
  readonly #defaultImage: string;
  readonly #workspaces: VmDockerProviderOptions["workspaces"];
  readonly #disks: ProjectDisks;
  readonly #engines: ProjectEngines;
  readonly #enter = shared(() => this.#reconcile());

  constructor(options: VmDockerProviderOptions) {
    const { vms, images, createEngineProvider, clock = systemClock } = options;
    this.#vms = vms;
    this.#images = images;
    this.#defaultImage = options.defaultImage;
    this.#workspaces = options.workspaces;
    this.#disks = options.disks;
    this.probe = options.probe;
    this.#engines = new ProjectEngines((vm) => new ProjectEngine(vm, (time) => createEngineProvider(vm, time), clock));
    this.machines = new VmDockerMachines(vms, () => this.#enter());
    this.containers = new VmDockerContainers(this.#engines, {
      images,
      disks: options.disks,
      find: (id) => this.#find(id),
    });
  }

  async create(spec: InstanceSpec, signal: AbortSignal, options: CreateInstanceOptions = {}): Promise<Instance> {
    const { onProgress, keepsVolumes = false } = options;
    // An instance that keeps its volumes already has its workspace.
    if (!keepsVolumes) await this.#workspaces.require(spec.container?.workspace);
    return await this.#inMachine(spec, { signal, onProgress }, async (engine, onRemoved) => {
      const container = await engine.while(async (both) => {
        const { imagePullPolicy: policy = "missing", image: reference = this.#defaultImage } = spec.container ?? {};
        const image = await this.#images.provide(engine.vm, reference, { policy, signal: both, onProgress });
        const inMachine = specInMachine(spec, { image, imagePullPolicy: "never" });
        return await engine.provider.create(inMachine, both, options);
      }, signal);
      return await this.#publish(engine, container, onRemoved);
    });
  }

  prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    return this.#inMachine(spec, { signal }, async (engine, onRemoved) => {
      const prepared = await engine.while((both) => engine.provider.prepare(specInMachine(spec), both), signal);
      return {
        id: spec.id,
        restore: async (directory, abort) => {
          try {
            const container = await engine.while((both) => prepared.restore(directory, both), abort);
            return await this.#publish(engine, container, onRemoved);
          } catch (thrown) {
            await onRemoved();
            throw thrown;
          }
        },
        destroy: async () => {
          await engine.whileRunning(() => prepared.destroy());
          await onRemoved();
        },
      };
    });
  }

  /** A checkpoint of files needs only the same processor; machines have the host's. */
  async checkpointRequirements(): Promise<CheckpointRequirements> {
    return { os: "linux", architecture: ARCHITECTURES[process.arch] ?? process.arch };
  }

  /** The instances in machines that this program owns or that it can adopt. */
  async list(): Promise<readonly InstanceRecord[]> {
    await this.#reconcile();
    const found = await Promise.all(this.#engines.all.map((engine) => this.#listIn(engine)));
    return found.flat();
  }

  /** `#find` already gave the sandbox a hold on its machine. */
  async adopt(id: SandboxId): Promise<Instance> {
    const engine = await this.#find(id);
    if (engine === undefined) throw noSuchInstance(id);
    const container = await engine.while(() => engine.provider.adopt(id));
    return await this.#publish(engine, container, () => this.#leave(id, engine));
  }

  async remove(id: SandboxId, options?: DestroyOptions): Promise<void> {
    const engine = await this.#find(id);
    if (engine === undefined) return;
    await engine.whileRunning(() => engine.provider.remove(id, options));
    await this.#leave(id, engine);
  }

  /** The sandbox holds its project's machine until it is removed or its creation fails. */
  async #inMachine<T>(
    spec: InstanceSpec,
    options: Pick<CreateInstanceOptions, "onProgress"> & { readonly signal: AbortSignal },
    work: (engine: ProjectEngine, onRemoved: () => Promise<void>) => Promise<T>,
  ): Promise<T> {
    const projectId = requireProject(spec);
    options.signal.throwIfAborted();
    await this.#enter();
    const { id } = spec;
    const engine = this.#engines.of(await this.#vms.getOrCreateVm(projectId, id, options));
    // The engine refuses a second container of the same id; the first keeps its hold.
    const isNew = this.#engines.engineOf(id) === undefined;
    this.#engines.assign(id, engine);
    const onRemoved = () => this.#leave(id, engine);
    try {
      requireDial(engine.vm, spec.container?.ports);
      await engine.while(() => this.containers.clearPending(engine));
      await this.#addCaches(engine, spec);
      return await work(engine, onRemoved);
    } catch (thrown) {
      if (isNew) await onRemoved();
      throw thrown;
    }
  }

  async #publish(engine: ProjectEngine, container: Instance, onRemoved: () => Promise<void>): Promise<Instance> {
    const instance = new VmDockerInstance({ engine, container, onRemoved });
    try {
      await engine.ports.publish(container.id, container.addresses);
      return instance;
    } catch (thrown) {
      await instance.destroy();
      throw thrown;
    }
  }

  /** Does nothing for an ended machine: the project's next machine may have a sandbox of the same id. */
  async #leave(id: SandboxId, engine: ProjectEngine): Promise<void> {
    if (this.#engines.engineOf(id) !== engine) return;
    this.#engines.unassign(id, engine);
    await engine.ports.close(id);
    // Their sizes are only shown, so a failure does not matter.
    if (engine.hasCaches) await this.containers.noteCaches(engine).catch(() => {});
    await this.#vms.releaseVm(engine.vm.projectId, id);
  }

  /** Before the sandbox exists, so that the disk is kept whatever happens later. */
  async #addCaches(engine: ProjectEngine, { container }: InstanceSpec): Promise<void> {
    const names = (container?.caches ?? []).map(({ name }) => name);
    if (names.length === 0) return;
    engine.hasCaches = true;
    const { keepsVolumes = false, projectId } = engine.vm;
    if (keepsVolumes) await this.#disks.add(projectId, names);
  }

  async #find(id: SandboxId): Promise<ProjectEngine | undefined> {
    const known = this.#engines.engineOf(id);
    if (known !== undefined) return known;
    await this.list();
    return this.#engines.engineOf(id);
  }

  #reconcile(): Promise<void> {
    return this.#vms.reconcile(async (vm) => (await this.#listIn(this.#engines.of(vm))).map(({ id }) => id));
  }

  async #listIn(engine: ProjectEngine): Promise<readonly InstanceRecord[]> {
    const found = (await engine.whileRunning(() => engine.provider.list())) ?? [];
    for (const { id, spec } of found) {
      this.#engines.assign(id, engine);
      engine.hasCaches ||= (spec.container?.caches ?? []).length > 0;
    }
    return found.map((record) => ({ ...record, spec: specOutside(record.spec) }));
  }
}

/** The machine has no files of this host and no network, so the workspace is copied. */
function specInMachine(spec: InstanceSpec, options: ContainerOptions = {}): InstanceSpec {
  return { ...spec, container: { ...spec.container, ...options, isWorkspaceCopied: true } };
}

/** Without what `specInMachine` added, so that a configuration can be made from it. */
function specOutside({ container, ...spec }: InstanceSpec): InstanceSpec {
  if (container === undefined) return { ...spec, container };
  const { isWorkspaceCopied: _, ...options } = container;
  return { ...spec, container: options };
}

function noSuchInstance(id: SandboxId): SandboxError {
  return new SandboxError("no_such_instance", {
    message: `cannot adopt instance ${id}: it is in no running machine`,
    hint: "list the instances of this host, or create a new sandbox",
  });
}
