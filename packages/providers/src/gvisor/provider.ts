import {
  type CheckpointRequirements,
  type Instance,
  type InstanceRecord,
  type InstanceSpec,
  type PreparedInstance,
  type PrepareInstanceOptions,
  type Provider,
  type ProviderStatus,
  type RequirementsOptions,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { INSTANCE_IO_WEIGHT } from "../host/cgroups.ts";
import { isFifoPairHeld } from "../host/fifo-pair.ts";
import { KernelProvider, type KernelProviderOptions } from "../host/kernel-provider.ts";
import { probeHost } from "../host/probe-host.ts";
import type { ProgramResult } from "../host/run-program.ts";
import { shared } from "../host/shared.ts";
import { checkpointRequirements } from "./checkpoint-requirements.ts";
import { findGvisorHost, type GvisorHost, type GvisorOptions } from "./host.ts";
import { Images } from "./images.ts";
import { GvisorInstance, removeInstance } from "./instance.ts";
import { settleMemory } from "./memory-limits.ts";
import { ociConfig } from "./oci-config.ts";
import { GvisorReleases } from "./releases.ts";
import { explain, type Launch } from "./runsc.ts";
import { RUNTIME_FILE, type Runtime } from "./runtimes.ts";

export interface GvisorProviderOptions extends KernelProviderOptions, Omit<GvisorOptions, "stateDirectory"> {}

interface LaunchOptions {
  readonly spec: InstanceSpec;
  readonly signal: AbortSignal;
  /** The requirements of the checkpoint that the instance is for. */
  readonly saved?: CheckpointRequirements | undefined;
}

interface LaunchParts {
  readonly host: GvisorHost;
  readonly runtime: Runtime;
  readonly launch: Launch;
}

/** Sandboxes in gVisor, a kernel in user space between them and the host's kernel. */
export class GvisorProvider extends KernelProvider implements Provider {
  readonly name = "gvisor";
  readonly #options: GvisorOptions;
  readonly #images = new Images(this.stateDirectory, this.clock);
  readonly #findHost = shared(() => findGvisorHost(this.#options));
  readonly releases = new GvisorReleases(this.#findHost);

  constructor(options: GvisorProviderOptions = {}) {
    super("user_space_kernel", options);
    this.#options = { ...options, stateDirectory: this.stateDirectory };
  }

  probe(): Promise<ProviderStatus> {
    return probeHost(async () => {
      const { runscVersion, cgroups, networkProblem } = await findGvisorHost(this.#options);
      const network = networkProblem === undefined ? "" : `; sandboxes have no network: ${networkProblem}`;
      return `runsc ${runscVersion}, systrap, cgroup version ${cgroups.version}${network}`;
    });
  }

  create(spec: InstanceSpec, signal: AbortSignal): Promise<Instance> {
    return this.#launch({ spec, signal }, async ({ host, launch, runtime }) => {
      await requireLaunched(host, spec.id, await runtime.commands.run(launch, signal), signal);
      await settleMemory(host, spec);
      return new GvisorInstance(host, { spec, runtime, isAdopted: false });
    });
  }

  /** The prepared instance is a sandbox without processes. */
  prepare(spec: InstanceSpec, signal: AbortSignal, options: PrepareInstanceOptions = {}): Promise<PreparedInstance> {
    const { id } = spec;
    const { saved } = options;
    return this.#launch({ spec, signal, saved }, async ({ host, launch, runtime }) => {
      const { commands } = runtime;
      await requireLaunched(host, id, await commands.create(launch, signal), signal);
      await settleMemory(host, spec);
      return {
        id,
        restore: (image, abort) =>
          this.started(id, async () => {
            await requireLaunched(host, id, await commands.restore(launch, image, abort), abort);
            // The agent was quiesced and its channel is new, so no frame is incomplete.
            return new GvisorInstance(host, { spec, runtime, isAdopted: false });
          }),
        destroy: () => this.remove(id),
      };
    });
  }

  async checkpointRequirements(rootfs: string, options: RequirementsOptions = {}): Promise<CheckpointRequirements> {
    const { runtimes } = await this.#findHost();
    const { saved, instance } = options;
    const runtime = await (saved ? runtimes.for(saved) : instance ? runtimes.of(instance) : runtimes.current());
    return await checkpointRequirements(runtime, await this.#images.find(rootfs));
  }

  async list(): Promise<readonly InstanceRecord[]> {
    const { store } = await this.#findHost();
    return await store.records((id) => isFifoPairHeld(store.directory(id)));
  }

  async adopt(id: SandboxId): Promise<Instance> {
    const host = await this.#findHost();
    const { spec } = await host.store.claim(id);
    if (isFifoPairHeld(host.store.directory(id))) {
      // The earlier program may have ended between the start and this step.
      await settleMemory(host, spec);
      return new GvisorInstance(host, { spec, runtime: await host.runtimes.of(id), isAdopted: true });
    }
    throw new SandboxError("instance_ended", {
      message: `instance ${id} cannot be adopted: it has ended`,
      hint: "remove the instance, and create a new sandbox",
    });
  }

  async remove(id: SandboxId): Promise<void> {
    await removeInstance(await this.#findHost(), id);
  }

  /** Records the instance before it starts; removes it on failure. */
  async #launch<T>({ spec, signal, saved }: LaunchOptions, start: (parts: LaunchParts) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    return await this.boot(async () => {
      const image = await this.#images.find(spec.rootfs);
      const { runtimes, cgroups, store } = host;
      const runtime = await (saved === undefined ? runtimes.current() : runtimes.for(saved));
      const { runsc, agent, agentPath } = runtime;
      const cgroupPath = host.cgroupPath(spec.id);
      const { canLimitSwap } = cgroups;
      const hasNetwork = host.networkProblem === undefined;
      const config = ociConfig({ spec, image, agent: agentPath, cgroupPath, canLimitSwap, hasNetwork });
      signal.throwIfAborted();
      const directory = await this.record(store, spec, {
        "config.json": JSON.stringify(config),
        [RUNTIME_FILE]: JSON.stringify({ runsc, agent }),
      });
      return await this.started(spec.id, async () => {
        const started = await start({ host, runtime, launch: { spec, directory, root: image.root } });
        // Not in the configuration, because runsc fails where the kernel has no weights.
        cgroups.setIoWeight(cgroupPath, INSTANCE_IO_WEIGHT);
        return started;
      });
    }, signal);
  }
}

/** Throws when a runsc command for an instance failed. */
async function requireLaunched(
  host: GvisorHost,
  id: SandboxId,
  { exitCode, failure }: ProgramResult,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  if (exitCode === 0) return;
  const explanation = failure ?? (await explain(host.store.directory(id)));
  throw new SandboxError("boot_failed", {
    message: `gVisor could not start instance ${id}: ${explanation || "runsc gave no reason"}`,
    hint: "run `sandpiper doctor`; if it finds no problem, report this as a bug",
  });
}
