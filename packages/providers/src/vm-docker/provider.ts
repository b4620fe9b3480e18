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
  type Vm,
  type VmManager,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { vmDockerCapabilities } from "./capabilities.ts";
import { VmDockerContainers } from "./containers.ts";
import { explainMissingImage } from "./image-error.ts";
import { VmDockerInstance } from "./instance.ts";
import { VmDockerPrepared } from "./prepared.ts";
import { ProjectEngine } from "./project-engine.ts";
import { ProjectEngines } from "./project-engines.ts";
import { requireProject } from "./requirements.ts";

/** What the processors that Node.js runs on are called in Go's words. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

export interface VmDockerProviderOptions {
  readonly vms: VmManager;
  /** Whether machines can be run here. */
  readonly probe: () => Promise<ProviderStatus>;
  /** Makes containers with the engine of one machine. */
  readonly createEngineProvider: (vm: Vm, clock: Clock) => Provider;
  readonly clock?: Clock | undefined;
}

/** Sandboxes as containers in virtual machines: one machine for each project, one container for each sandbox. */
export class VmDockerProvider implements Provider {
  readonly name = "vm-docker";
  readonly capabilities = vmDockerCapabilities;
  readonly containers: VmDockerContainers;
  readonly probe: () => Promise<ProviderStatus>;
  /** The machines themselves, for whoever runs this: to look at, and to remove. */
  readonly vms: VmManager;
  readonly #engines: ProjectEngines;
  #entered: Promise<void> | undefined;

  constructor({ vms, probe, createEngineProvider, clock = systemClock }: VmDockerProviderOptions) {
    this.vms = vms;
    this.probe = probe;
    this.#engines = new ProjectEngines((vm) => new ProjectEngine(vm, (time) => createEngineProvider(vm, time), clock));
    this.containers = new VmDockerContainers(this.#engines, (id) => this.#find(id));
  }

  create(spec: InstanceSpec, signal: AbortSignal, options: CreateInstanceOptions = {}): Promise<Instance> {
    return this.#inMachine(spec, { signal, onProgress: options.onProgress }, async (engine, onRemoved) => {
      const container = await engine
        .while((both) => engine.provider.create(spec, both, options), signal)
        .catch((thrown: unknown) => Promise.reject(explainMissingImage(thrown)));
      return new VmDockerInstance({ engine, container, onRemoved });
    });
  }

  prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    return this.#inMachine(spec, { signal }, async (engine, onRemoved) => {
      const place = await engine.while((both) => engine.provider.prepare(spec, both), signal);
      return new VmDockerPrepared({ engine, place, onRemoved });
    });
  }

  /** Files run on whatever runs their programs; machines have the processor of this one. */
  async checkpointRequirements(): Promise<CheckpointRequirements> {
    return { os: "linux", architecture: ARCHITECTURES[process.arch] ?? process.arch };
  }

  /** Those in machines that are this program's, or nobody's. */
  async list(): Promise<readonly InstanceRecord[]> {
    await this.#reconcile();
    const found = await Promise.all(this.#engines.all.map((engine) => this.#listIn(engine)));
    return found.flat();
  }

  /** One that is found holds its machine already. */
  async adopt(id: SandboxId): Promise<Instance> {
    const engine = await this.#find(id);
    if (engine === undefined) throw noSuchInstance(id);
    const container = await engine.while(() => engine.provider.adopt(id));
    return new VmDockerInstance({ engine, container, onRemoved: () => this.#leave(id, engine) });
  }

  async remove(id: SandboxId, options?: DestroyOptions): Promise<void> {
    const engine = await this.#find(id);
    if (engine === undefined) return;
    try {
      await engine.while(() => engine.provider.remove(id, options));
    } catch (thrown) {
      if (!engine.gone.aborted) throw thrown;
    }
    await this.#leave(id, engine);
  }

  /** The machine of its project is the sandbox's until it is removed, or could not be made. */
  async #inMachine<T>(
    spec: InstanceSpec,
    options: Pick<CreateInstanceOptions, "onProgress"> & { readonly signal: AbortSignal },
    work: (engine: ProjectEngine, onRemoved: () => Promise<void>) => Promise<T>,
  ): Promise<T> {
    const projectId = requireProject(spec);
    options.signal.throwIfAborted();
    this.#entered ??= this.#reconcile().catch((error: unknown) => {
      this.#entered = undefined;
      throw error;
    });
    await this.#entered;
    const { id } = spec;
    const engine = this.#engines.of(await this.vms.getOrCreateVm(projectId, id, options));
    // The engine refuses another one of the same id, which keeps what it has.
    const isNew = this.#engines.placeOf(id) === undefined;
    this.#engines.place(id, engine);
    const onRemoved = () => this.#leave(id, engine);
    try {
      return await work(engine, onRemoved);
    } catch (thrown) {
      if (isNew) await onRemoved();
      throw thrown;
    }
  }

  /** Of a machine that has ended nobody has a hold any more; another one of the project may have a sandbox of that id. */
  async #leave(id: SandboxId, engine: ProjectEngine): Promise<void> {
    if (this.#engines.placeOf(id) !== engine) return;
    this.#engines.unplace(id, engine);
    await this.vms.releaseVm(engine.vm.projectId, id);
  }

  async #find(id: SandboxId): Promise<ProjectEngine | undefined> {
    const known = this.#engines.placeOf(id);
    if (known !== undefined) return known;
    await this.list();
    return this.#engines.placeOf(id);
  }

  #reconcile(): Promise<void> {
    return this.vms.reconcile(async (vm) => (await this.#listIn(this.#engines.of(vm))).map(({ id }) => id));
  }

  async #listIn(engine: ProjectEngine): Promise<readonly InstanceRecord[]> {
    try {
      const found = await engine.while(() => engine.provider.list());
      for (const { id } of found) this.#engines.place(id, engine);
      return found;
    } catch (thrown) {
      if (engine.gone.aborted) return [];
      throw thrown;
    }
  }
}

function noSuchInstance(id: SandboxId): SandboxError {
  return new SandboxError("not_found", {
    reason: "no_such_instance",
    message: `instance ${id} cannot be adopted: no machine has it`,
    hint: "list the instances of this host, or create a new one",
  });
}
