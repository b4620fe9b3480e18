import { join } from "node:path";
import {
  type CheckpointRequirements,
  type CreateInstanceOptions,
  type Instance,
  type InstanceRecord,
  type InstanceSpec,
  type PreparedInstance,
  type ProvideOptions,
  type Provider,
  type ProviderStatus,
  type PullProgress,
  SandboxError,
} from "@sandpiper/core";
import { PROTOCOL_GENERATION, type SandboxId } from "@sandpiper/protocol";
import { findDefaultRoot } from "../guest/image-default.ts";
import { Images } from "../guest/images.ts";
import { MACHINE_IMAGE, type Part, type Provision, type ProvisionOptions, provision } from "../guest/provision.ts";
import { cpuFeatures } from "../host/cpu-features.ts";
import { KernelProvider, type KernelProviderOptions } from "../host/kernel-provider.ts";
import { listMachines, removeMachine } from "../host/machine-host.ts";
import { shared } from "../host/shared.ts";
import { removeAbandonedMachines, removeTransientMachine } from "../host/transient-machine.ts";
import { copyDisks, STATE_FILE } from "./checkpoint-files.ts";
import { findQemuHost, findQemuState, isProvidable, type QemuHost, type QemuState } from "./host.ts";
import { QemuInstance } from "./instance.ts";
import {
  type LaunchedMachine,
  launchMachine,
  makeMachineDirectory,
  moveMachine,
  VOLUMES_DISK,
} from "./machine/launch-machine.ts";
import { DEVICES, MONITOR_SOCKET, TRANSLATED_PROCESSOR } from "./machine/machine-arguments.ts";
import type { MachineShape } from "./machine/machine-shape.ts";
import { loadState } from "./machine/migration.ts";
import { PreparedMachines } from "./prepared-machines.ts";
import { probeQemu } from "./probe.ts";
import { QmpClient } from "./qmp/qmp-client.ts";
import { type CloneOptions, launchClone } from "./template/clone.ts";
import { findTemplate, type Template, templateKey } from "./template/template.ts";
import { Templates } from "./template/templates.ts";

/** QEMU accepts a new client once it has noticed that the last one is gone. */
const MONITOR_TIMEOUT_MS = 10_000;

/** A disk for volumes, in raw format. */
export interface VolumeDisk {
  readonly sizeMib: number;
  /** Creates its file at a path in the machine's directory, which is removed with the machine. */
  attach(path: string): Promise<void>;
}

export interface QemuProviderOptions extends KernelProviderOptions {
  /** Finds the disk for the volumes of a machine; without it, machines have none. */
  readonly volumeDisk?: ((spec: InstanceSpec) => Promise<VolumeDisk>) | undefined;
  /** An initramfs whose content, such as modules of another kernel, replaces the modules of Debian's. */
  readonly initrd?: string | undefined;
  /** How many prepared machines to keep for each shape that sandboxes have used. */
  readonly prepared?: number | undefined;
  /** Installs missing parts; runs this clone's set-up by default. */
  readonly provision?: Provision | undefined;
}

/** Sandboxes in virtual machines, each a clone of a template that has booted before. */
export class QemuProvider extends KernelProvider implements Provider, AsyncDisposable {
  readonly name = "qemu";
  readonly #templates = new Templates();
  readonly #prepared: PreparedMachines;
  readonly #images = new Images(this.stateDirectory, this.clock);
  readonly #provision: Provision;
  readonly #options: Pick<QemuProviderOptions, "volumeDisk" | "initrd" | "killList">;
  readonly #findHost = shared(() => {
    this.#host = this.#enterHost();
    return this.#host;
  });
  #state: QemuState | undefined;
  #host: Promise<QemuHost> | undefined;

  constructor(options: QemuProviderOptions = {}) {
    super("vm", options);
    this.#prepared = new PreparedMachines(options.prepared ?? 0);
    this.#provision = options.provision ?? provision;
    this.#options = options;
  }

  probe(): Promise<ProviderStatus> {
    return probeQemu(this.stateDirectory);
  }

  /** Ends the prepared machines; those of sandboxes keep running. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#prepared[Symbol.asyncDispose]();
    await this.#host?.then(({ shell }) => shell.close()).catch(() => {});
  }

  async create(spec: InstanceSpec, signal: AbortSignal, options?: CreateInstanceOptions): Promise<Instance> {
    signal.throwIfAborted();
    const host = await this.#provideHost(spec.rootfs, { signal, ...options });
    const volumes = await this.#options.volumeDisk?.(spec);
    const shape = { ...(await this.#shape(host, spec, options)), volumesMib: volumes?.sizeMib };
    const template = await this.#template(host, shape, { signal, ...options });
    return await this.boot(async () => {
      await this.record(host.store, spec);
      return await this.#start(host, spec, async () => {
        const machine = await this.#clone(host, spec, { template, shape, signal, volumes });
        if (volumes === undefined) this.#prepared.refill(host, shape, template);
        return machine;
      });
    }, signal);
  }

  /** The machine of a prepared instance starts when its saved state is there. */
  async prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    signal.throwIfAborted();
    const host = await this.#provideHost(spec.rootfs, { signal });
    const shape = await this.#shape(host, spec);
    await this.record(host.store, spec);
    const { id } = spec;
    return {
      id,
      restore: (saved, abort) =>
        this.#start(host, spec, async () => {
          const directory = await makeMachineDirectory(host.machineDirectory(id));
          await copyDisks(saved, directory);
          const state = { stateFile: join(saved, STATE_FILE), memory: {}, hasBaseDisk: true, ignoresShared: false };
          const machine = await launchMachine(host, { name: id, directory, shape, ...state, signal: abort });
          await loadState(machine.monitor);
          return machine;
        }),
      destroy: () => this.remove(id),
    };
  }

  /** A saved machine can be restored only with the same devices and the same image. */
  async checkpointRequirements(rootfs: string): Promise<CheckpointRequirements> {
    const host = await this.#provideHost(rootfs, { signal: new AbortController().signal });
    return {
      runtime: `qemu ${host.qemu.version}`,
      platform: host.accelerator,
      architecture: process.arch,
      agentGeneration: String(PROTOCOL_GENERATION),
      devices: String(DEVICES),
      image: (await this.#images.find(rootfs)).sha,
      // Translated code runs on a processor that QEMU emulates.
      cpuFeatures: host.accelerator === "kvm" ? cpuFeatures() : TRANSLATED_PROCESSOR,
    };
  }

  async provide(rootfs: string, options: ProvideOptions): Promise<void> {
    await this.#provideHost(rootfs, options);
    await this.#images.find(rootfs, options);
  }

  async list(): Promise<readonly InstanceRecord[]> {
    return await listMachines(this.#findState());
  }

  async adopt(id: SandboxId): Promise<Instance> {
    const host = this.#findState();
    const { spec } = await host.store.claim(id);
    const path = join(host.machineDirectory(id), MONITOR_SOCKET);
    const monitor = await QmpClient.connect(path, AbortSignal.timeout(MONITOR_TIMEOUT_MS)).catch((error: unknown) => {
      throw new SandboxError("instance_ended", {
        message: `instance ${id} cannot be adopted: its virtual machine does not answer`,
        hint: "remove the instance, and create a new sandbox",
        cause: error,
      });
    });
    // The program may have died while the machine was paused for a checkpoint.
    if (!(await monitor.execute("query-status", {})).running) await monitor.execute("cont", {});
    return new QemuInstance(host, { spec, clock: this.clock, monitor });
  }

  async remove(id: SandboxId): Promise<void> {
    await removeMachine(this.#findState(), id);
  }

  #start(host: QemuHost, spec: InstanceSpec, launch: () => Promise<LaunchedMachine>): Promise<QemuInstance> {
    return this.started(spec.id, async () => {
      const { monitor, agent } = await launch();
      return new QemuInstance(host, { spec, clock: this.clock, monitor, agent });
    });
  }

  /** Takes a prepared machine, or starts a new one. */
  async #clone(
    host: QemuHost,
    { id }: InstanceSpec,
    {
      volumes,
      ...options
    }: Pick<CloneOptions, "template" | "shape" | "signal"> & {
      readonly volumes: VolumeDisk | undefined;
    },
  ): Promise<LaunchedMachine> {
    const target = { name: id, directory: host.machineDirectory(id), ...options };
    // A prepared machine has no disk for volumes.
    const prepared = volumes === undefined ? this.#prepared.take(host, options.shape) : undefined;
    if (prepared === undefined) {
      await makeMachineDirectory(target.directory);
      await volumes?.attach(join(target.directory, VOLUMES_DISK));
      const machine = await launchClone(host, target);
      await loadState(machine.monitor);
      return machine;
    }
    try {
      await moveMachine(host, prepared, id);
      await prepared.monitor.execute("cont", {});
      return prepared;
    } catch (error) {
      // A directory that was already moved is removed with the instance.
      await removeTransientMachine(host, prepared);
      throw error;
    }
  }

  async #shape(host: QemuHost, spec: InstanceSpec, options: CreateInstanceOptions = {}): Promise<MachineShape> {
    const [image, kernel] = await Promise.all([this.#images.find(spec.rootfs, options), host.guestKernel(spec.kernel)]);
    return { ...spec, image, kernel };
  }

  /** Downloads and builds the missing parts first. */
  async #provideHost(rootfs: string, options: ProvisionOptions): Promise<QemuHost> {
    const found = await this.#findHost().catch((thrown: unknown) => SandboxError.from(thrown));
    const isHostMissing = found instanceof SandboxError;
    if (isHostMissing && !isProvidable(found)) throw found;
    const parts: readonly Part[] = [
      ...(isHostMissing && found.reason === "agent_missing" ? (["agent"] as const) : []),
      ...(isHostMissing ? (["qemu", "kernel"] as const) : []),
      ...(rootfs === "host" && (await findDefaultRoot()) === undefined ? (["image"] as const) : []),
    ];
    if (parts.length > 0) await this.#provision(parts, options);
    return isHostMissing ? await this.#findHost() : found;
  }

  /** The first machine of a shape takes seconds. */
  async #template(host: QemuHost, shape: MachineShape, { signal, onProgress }: ProvisionOptions): Promise<Template> {
    const tell = (status: PullProgress["status"]) =>
      onProgress?.({ image: MACHINE_IMAGE, layer: "template", status, doneBytes: 0, totalBytes: undefined });
    const isMissing = onProgress !== undefined && (await findTemplate(host, templateKey(host, shape))) === undefined;
    if (isMissing) tell("building");
    const template = await this.#templates.get(host, shape, signal);
    if (isMissing) tell("complete");
    return template;
  }

  #findState(): QemuState {
    this.#state ??= findQemuState(this.stateDirectory, { killList: this.#options.killList });
    return this.#state;
  }

  async #enterHost(): Promise<QemuHost> {
    const host = await findQemuHost(this.#findState(), this.#options.initrd);
    await removeAbandonedMachines(host);
    return host;
  }
}
