import { availableParallelism } from "node:os";
import {
  type CheckpointRequirements,
  type Clock,
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
import { isFifoPairHeld } from "../host/fifo-pair.ts";
import { Semaphore } from "../host/semaphore.ts";
import { stateDirectory } from "../host/state-directory.ts";
import { gvisorCapabilities } from "./capabilities.ts";
import { checkpointRequirements } from "./checkpoint-requirements.ts";
import { findGvisorHost, type GvisorHost, type GvisorOptions } from "./host.ts";
import { Images } from "./images.ts";
import { GvisorInstance } from "./instance.ts";
import { requireLaunched, undoneOnFailure } from "./launch.ts";
import { ociConfig } from "./oci-config.ts";
import { GvisorPrepared } from "./prepared.ts";
import { probeGvisor } from "./probe.ts";
import { removeInstance } from "./remove-instance.ts";

/** Boots keep the processors busy, so more of them at once only slow each other down. */
const BOOTS_PER_PROCESSOR = 2;

/** Sandboxes in gVisor, a kernel in user space between them and the host's kernel. */
export class GvisorProvider implements Provider {
  readonly name = "gvisor";
  readonly capabilities = gvisorCapabilities;
  readonly #options: GvisorOptions;
  readonly #boots = new Semaphore(BOOTS_PER_PROCESSOR * availableParallelism());
  readonly #images: Images;
  readonly #clock: Clock;
  #host: Promise<GvisorHost> | undefined;

  constructor({ clock = systemClock, ...options }: Partial<GvisorOptions> & { readonly clock?: Clock } = {}) {
    this.#options = { stateDirectory: stateDirectory(), ...options };
    this.#images = new Images(this.#options.stateDirectory, clock);
    this.#clock = clock;
  }

  probe(): Promise<ProviderStatus> {
    return probeGvisor(this.#options);
  }

  async create(spec: InstanceSpec, signal: AbortSignal): Promise<Instance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    return await this.#boots.run(() => this.#boot(host, spec, signal), signal);
  }

  async prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    return await this.#boots.run(() => this.#prepare(host, spec, signal), signal);
  }

  async checkpointRequirements(rootfs: string): Promise<CheckpointRequirements> {
    const host = await this.#findHost();
    return await checkpointRequirements(host, await this.#images.find(rootfs));
  }

  async list(): Promise<readonly InstanceRecord[]> {
    const { store } = await this.#findHost();
    return await store.records((id) => isFifoPairHeld(store.directory(id)));
  }

  async adopt(id: SandboxId): Promise<Instance> {
    const host = await this.#findHost();
    const { spec } = await host.store.claim(id);
    if (isFifoPairHeld(host.store.directory(id))) return new GvisorInstance(host, { spec, isAdopted: true });
    throw new SandboxError("instance_ended", {
      message: `instance ${id} cannot be adopted: it has ended`,
      hint: "remove the instance, and create a new sandbox",
    });
  }

  async remove(id: SandboxId): Promise<void> {
    await removeInstance(await this.#findHost(), id);
  }

  async #boot(host: GvisorHost, spec: InstanceSpec, signal: AbortSignal): Promise<Instance> {
    return await this.#launch(host, spec, signal, async (directory) => {
      await host.runsc.run(spec, directory, signal).then((result) => requireLaunched(host, spec, result, signal));
      return new GvisorInstance(host, { spec, isAdopted: false });
    });
  }

  async #prepare(host: GvisorHost, spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    return await this.#launch(host, spec, signal, async (directory) => {
      await host.runsc.create(spec, directory, signal).then((result) => requireLaunched(host, spec, result, signal));
      return new GvisorPrepared(host, spec);
    });
  }

  /** Records the instance before it starts; removes it on failure. */
  async #launch<T>(
    host: GvisorHost,
    spec: InstanceSpec,
    signal: AbortSignal,
    start: (directory: string) => Promise<T>,
  ): Promise<T> {
    const image = await this.#images.find(spec.rootfs);
    const { agent, cgroups } = host;
    const cgroupPath = host.cgroupPath(spec.id);
    const config = ociConfig({ spec, image, agent, cgroupPath, canLimitSwap: cgroups.canLimitSwap });
    const entry = { spec, createdAt: this.#clock.now().toISOString() };
    signal.throwIfAborted();
    const directory = await host.store.add(entry, { "config.json": JSON.stringify(config) });
    return await undoneOnFailure(host, spec.id, () => start(directory));
  }

  #findHost(): Promise<GvisorHost> {
    this.#host ??= findGvisorHost(this.#options).catch((error: unknown) => {
      this.#host = undefined;
      throw error;
    });
    return this.#host;
  }
}
