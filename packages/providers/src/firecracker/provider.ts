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
import { firecrackerCapabilities } from "./capabilities.ts";
import { checkpointRequirements } from "./checkpoint-requirements.ts";
import { findFirecrackerHost } from "./find-host.ts";
import { type FirecrackerHost, type FirecrackerOptions, findFirecrackerState } from "./host.ts";
import { FirecrackerInstance } from "./instance.ts";
import { undoneOnFailure } from "./launch.ts";
import { listInstances } from "./list-instances.ts";
import { bootMachine } from "./machine/launch-machine.ts";
import { machineShape } from "./machine/machine-shape.ts";
import { FirecrackerPrepared } from "./prepared.ts";
import { probeFirecracker } from "./probe.ts";
import { removeInstance } from "./remove-instance.ts";

/** Boots keep the processors busy, so more of them at once only slow each other down. */
const BOOTS_PER_PROCESSOR = 2;

export interface FirecrackerProviderOptions extends Partial<FirecrackerOptions> {
  readonly clock?: Clock | undefined;
}

/** Sandboxes in Firecracker machines, each in its own jail. */
export class FirecrackerProvider implements Provider {
  readonly name = "firecracker";
  readonly capabilities = firecrackerCapabilities;
  readonly #options: FirecrackerOptions;
  readonly #boots = new Semaphore(BOOTS_PER_PROCESSOR * availableParallelism());
  readonly #images: Images;
  readonly #clock: Clock;
  #host: Promise<FirecrackerHost> | undefined;

  constructor({ clock = systemClock, ...options }: FirecrackerProviderOptions = {}) {
    this.#options = { stateDirectory: stateDirectory(), ...options };
    this.#images = new Images(this.#options.stateDirectory, clock);
    this.#clock = clock;
  }

  probe(): Promise<ProviderStatus> {
    return probeFirecracker(this.#options);
  }

  async create(spec: InstanceSpec, signal: AbortSignal, options: CreateInstanceOptions = {}): Promise<Instance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    const [image, files] = await Promise.all([this.#images.find(spec.rootfs, options), host.bootFiles(spec.kernel)]);
    return await this.#boots.run(async () => {
      await this.#write(host, spec);
      return await undoneOnFailure(host, spec.id, async () => {
        const directory = host.store.directory(spec.id);
        await bootMachine(host, files, { name: spec.id, directory, shape: machineShape(spec, image), signal });
        return new FirecrackerInstance(host, { spec, clock: this.#clock });
      });
    }, signal);
  }

  async prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    const image = await this.#images.find(spec.rootfs);
    await this.#write(host, spec);
    return new FirecrackerPrepared(host, { spec, shape: machineShape(spec, image), clock: this.#clock });
  }

  async checkpointRequirements(rootfs: string): Promise<CheckpointRequirements> {
    const host = await this.#findHost();
    return checkpointRequirements(host, await this.#images.find(rootfs));
  }

  async list(): Promise<readonly InstanceRecord[]> {
    return await listInstances(findFirecrackerState(this.#options));
  }

  async adopt(id: SandboxId): Promise<Instance> {
    return await adoptInstance(findFirecrackerState(this.#options), id, this.#clock);
  }

  async remove(id: SandboxId): Promise<void> {
    await removeInstance(findFirecrackerState(this.#options), id);
  }

  /** Must run before anything is started for the instance. */
  async #write(host: FirecrackerHost, spec: InstanceSpec): Promise<void> {
    await host.store.add({ spec, createdAt: this.#clock.now().toISOString() }, {});
  }

  #findHost(): Promise<FirecrackerHost> {
    this.#host ??= findFirecrackerHost(this.#options).catch((error: unknown) => {
      this.#host = undefined;
      throw error;
    });
    return this.#host;
  }
}
