import { availableParallelism } from "node:os";
import {
  type CheckpointRequirements,
  type Clock,
  type CreateInstanceOptions,
  type Instance,
  type InstanceRecord,
  type InstanceSpec,
  type PreparedInstance,
  type Provider,
  type ProviderStatus,
  systemClock,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { Images } from "../guest/images.ts";
import { Semaphore } from "../host/semaphore.ts";
import { stateDirectory } from "../host/state-directory.ts";
import { adoptInstance } from "./adopt-instance.ts";
import { qemuCapabilities } from "./capabilities.ts";
import { checkpointRequirements } from "./checkpoint-requirements.ts";
import { type CloneOptions, launchClone } from "./clone.ts";
import { findQemuHost, type QemuHost, type QemuOptions } from "./host.ts";
import { QemuInstance } from "./instance.ts";
import { undoneOnFailure } from "./launch.ts";
import { type LaunchedMachine, makeMachineDirectory, moveMachine } from "./launch-machine.ts";
import { listInstances } from "./list-instances.ts";
import { type MachineShape, machineShape } from "./machine-shape.ts";
import { loadState } from "./migration.ts";
import { clearNurseryPlace, sweepNursery } from "./nursery.ts";
import { QemuPrepared } from "./prepared.ts";
import { probeQemu } from "./probe.ts";
import { removeInstance } from "./remove-instance.ts";
import { Spares } from "./spares.ts";
import { Templates } from "./templates.ts";

/** Boots keep the processors busy; more of them at once only make each of them slower. */
const BOOTS_PER_PROCESSOR = 2;

export interface QemuProviderOptions extends Partial<QemuOptions> {
  readonly clock?: Clock | undefined;
  /** How many machines of each shape that was asked for are started ahead and wait. */
  readonly preStarted?: number | undefined;
}

/** Sandboxes in virtual machines, each a copy of one that has booted before. */
export class QemuProvider implements Provider, AsyncDisposable {
  readonly name = "qemu";
  readonly capabilities = qemuCapabilities;
  readonly #options: QemuOptions;
  readonly #boots = new Semaphore(BOOTS_PER_PROCESSOR * availableParallelism());
  readonly #templates = new Templates();
  readonly #spares: Spares;
  readonly #images: Images;
  readonly #clock: Clock;
  #host: Promise<QemuHost> | undefined;

  constructor({ clock = systemClock, preStarted = 0, ...options }: QemuProviderOptions = {}) {
    this.#spares = new Spares(preStarted);
    this.#options = { stateDirectory: stateDirectory(), ...options };
    this.#images = new Images(this.#options.stateDirectory, clock);
    this.#clock = clock;
  }

  probe(): Promise<ProviderStatus> {
    return probeQemu(this.#options);
  }

  /** Ends the machines that nobody has asked for; those of sandboxes go on. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#spares[Symbol.asyncDispose]();
  }

  async create(spec: InstanceSpec, signal: AbortSignal, options?: CreateInstanceOptions): Promise<Instance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    const shape = await this.#shape(host, spec, options);
    const template = await this.#templates.get(host, shape, signal);
    return await this.#boots.run(async () => {
      await this.#write(host, spec);
      return await undoneOnFailure(host, spec.id, async () => {
        const { monitor, agent } = await this.#clone(host, spec, { template, shape, signal });
        this.#spares.refill(host, shape, template);
        return new QemuInstance(host, { spec, clock: this.#clock, monitor, agent });
      });
    }, signal);
  }

  async prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    const shape = await this.#shape(host, spec);
    await this.#write(host, spec);
    return new QemuPrepared(host, { spec, shape, clock: this.#clock });
  }

  async checkpointRequirements(rootfs: string): Promise<CheckpointRequirements> {
    const host = await this.#findHost();
    return checkpointRequirements(host, await this.#images.find(rootfs));
  }

  async list(): Promise<readonly InstanceRecord[]> {
    return await listInstances(await this.#findHost());
  }

  async adopt(id: SandboxId): Promise<Instance> {
    return await adoptInstance(await this.#findHost(), id, this.#clock);
  }

  async remove(id: SandboxId): Promise<void> {
    await removeInstance(await this.#findHost(), id);
  }

  /** One that was started ahead, or a new one. */
  async #clone(
    host: QemuHost,
    { id }: InstanceSpec,
    options: Pick<CloneOptions, "template" | "shape" | "signal">,
  ): Promise<LaunchedMachine> {
    const place = { name: id, directory: host.machineDirectory(id), ...options };
    const spare = this.#spares.take(host, options.shape);
    if (spare === undefined) {
      await makeMachineDirectory(place.directory);
      const machine = await launchClone(host, place);
      await loadState(machine.monitor);
      return machine;
    }
    try {
      await moveMachine(spare, place.directory);
      await spare.monitor.execute("cont", {});
      return spare;
    } catch (error) {
      // What has moved goes with the instance.
      await clearNurseryPlace(host, spare);
      throw error;
    }
  }

  async #shape(host: QemuHost, spec: InstanceSpec, options: CreateInstanceOptions = {}): Promise<MachineShape> {
    const [image, kernel] = await Promise.all([this.#images.find(spec.rootfs, options), host.guestKernel(spec.kernel)]);
    return machineShape(spec, image, kernel);
  }

  /** Before anything runs for it. */
  async #write(host: QemuHost, spec: InstanceSpec): Promise<void> {
    await host.store.add({ spec, createdAt: this.#clock.now().toISOString() }, {});
  }

  #findHost(): Promise<QemuHost> {
    this.#host ??= this.#enterHost().catch((error: unknown) => {
      this.#host = undefined;
      throw error;
    });
    return this.#host;
  }

  async #enterHost(): Promise<QemuHost> {
    const host = await findQemuHost(this.#options);
    await sweepNursery(host);
    return host;
  }
}
