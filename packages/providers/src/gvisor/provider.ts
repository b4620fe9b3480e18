import { availableParallelism } from "node:os";
import {
  type Clock,
  type Instance,
  type InstanceRecord,
  type InstanceSpec,
  type Provider,
  type ProviderStatus,
  SandboxError,
  systemClock,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { isFifoPairHeld } from "../host/fifo-pair.ts";
import { isOwnerAlive } from "../host/process-owner.ts";
import { Semaphore } from "../host/semaphore.ts";
import { stateDirectory } from "../host/state-directory.ts";
import { gvisorCapabilities } from "./capabilities.ts";
import { findGvisorHost, type GvisorHost, type GvisorOptions } from "./host.ts";
import { Images } from "./images.ts";
import { GvisorInstance } from "./instance.ts";
import { ociConfig } from "./oci-config.ts";
import { probeGvisor } from "./probe.ts";
import { removeInstance } from "./remove-instance.ts";

/** Boots keep the processors busy; more of them at once only make each of them slower. */
const BOOTS_PER_PROCESSOR = 2;

/** Sandboxes in gVisor: a kernel in user space stands between them and the host's. */
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

  async list(): Promise<readonly InstanceRecord[]> {
    const { store } = await this.#findHost();
    const entries = await store.list();
    return await Promise.all(
      entries.map(async ({ spec, createdAt, owner }) => ({
        id: spec.id,
        spec,
        createdAt: new Date(createdAt),
        isRunning: isFifoPairHeld(store.directory(spec.id)),
        isOrphan: !(await isOwnerAlive(owner)),
      })),
    );
  }

  async adopt(id: SandboxId): Promise<Instance> {
    const host = await this.#findHost();
    const { spec } = await host.store.claim(id);
    if (isFifoPairHeld(host.store.directory(id))) return new GvisorInstance(host, { spec, isAdopted: true });
    throw new SandboxError("gone", {
      reason: "instance_ended",
      message: `instance ${id} cannot be adopted: it has ended`,
      hint: "remove what is left of it, and create a new one",
    });
  }

  async remove(id: SandboxId): Promise<void> {
    await removeInstance(await this.#findHost(), id);
  }

  async #boot(host: GvisorHost, spec: InstanceSpec, signal: AbortSignal): Promise<Instance> {
    const image = await this.#images.find(spec.rootfs);
    const { agent, cgroups } = host;
    const cgroupPath = host.cgroupPath(spec.id);
    const config = ociConfig({ spec, image, agent, cgroupPath, canLimitSwap: cgroups.canLimitSwap });
    const entry = { spec, createdAt: this.#clock.now().toISOString() };
    const directory = await host.store.add(entry, { "config.json": JSON.stringify(config) });
    try {
      const { exitCode, failure } = await host.runsc.run(spec, directory, signal);
      signal.throwIfAborted();
      if (exitCode !== 0) throw bootFailed(spec.id, failure ?? (await host.runsc.explain(directory)));
      return new GvisorInstance(host, { spec, isAdopted: false });
    } catch (error) {
      await removeInstance(host, spec.id).catch((left: unknown) => Promise.reject(cleanUpFailed(spec.id, error, left)));
      throw error;
    }
  }

  #findHost(): Promise<GvisorHost> {
    this.#host ??= findGvisorHost(this.#options).catch((error: unknown) => {
      this.#host = undefined;
      throw error;
    });
    return this.#host;
  }
}

function bootFailed(id: SandboxId, explanation: string): SandboxError {
  return new SandboxError("internal", {
    reason: "boot_failed",
    message: `gVisor could not start instance ${id}: ${explanation || "runsc gave no reason"}`,
    hint: "run `sandpiper doctor`; if it finds nothing, please report this",
  });
}

function cleanUpFailed(id: SandboxId, error: unknown, left: unknown): SandboxError {
  return new SandboxError("internal", {
    reason: "clean_up_failed",
    message: `instance ${id} did not start (${SandboxError.from(error).message}), and could not be removed either`,
    hint: "remove it by its id, or reconcile: it is still in the provider's list",
    cause: left,
  });
}
