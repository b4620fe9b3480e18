import { join } from "node:path";
import {
  type CheckpointRequirements,
  type CreateInstanceOptions,
  type Instance,
  type InstanceRecord,
  type InstanceSpec,
  type PreparedInstance,
  type Provider,
  type ProviderStatus,
  SandboxError,
} from "@sandpiper/core";
import { PROTOCOL_GENERATION, type SandboxId } from "@sandpiper/protocol";
import { Images } from "../guest/images.ts";
import { cpuFeatures } from "../host/cpu-features.ts";
import { KernelProvider, type KernelProviderOptions } from "../host/kernel-provider.ts";
import { listMachines, type MachineHost, removeMachine } from "../host/machine-host.ts";
import { probeHost } from "../host/probe-host.ts";
import { shared } from "../host/shared.ts";
import { ApiClient } from "./api/api-client.ts";
import { findFirecrackerHost } from "./find-host.ts";
import { type FirecrackerHost, type FirecrackerOptions, findFirecrackerState } from "./host.ts";
import { FirecrackerInstance } from "./instance.ts";
import { resumeAbandoned } from "./machine/checkpoint.ts";
import { machineDirectory } from "./machine/jail.ts";
import { bootMachine, guestHostname, restoreMachine } from "./machine/launch-machine.ts";
import { API_SOCKET, VSOCK_SOCKET } from "./machine/machine-files.ts";
import { tellGuest } from "./machine/tell-guest.ts";
import { untilConnected } from "./vsock/vsock-connection.ts";

/** A machine that is being saved answers afterwards. */
const ANSWER_MS = 30_000;

export interface FirecrackerProviderOptions extends KernelProviderOptions, Omit<FirecrackerOptions, "stateDirectory"> {}

/** Sandboxes in Firecracker machines, each in its own jail. */
export class FirecrackerProvider extends KernelProvider implements Provider {
  readonly name = "firecracker";
  readonly #options: FirecrackerOptions;
  readonly #images = new Images(this.stateDirectory, this.clock);
  readonly #findHost = shared(() => findFirecrackerHost(this.#options));

  constructor(options: FirecrackerProviderOptions = {}) {
    super("vm", options);
    this.#options = { ...options, stateDirectory: this.stateDirectory };
  }

  probe(): Promise<ProviderStatus> {
    return probeHost(async () => {
      const { firecracker, cgroups, kernelVersion, networkProblem } = await findFirecrackerHost(this.#options);
      return `Firecracker ${firecracker.version}, KVM, kernel ${kernelVersion}, cgroup version ${cgroups.version}${networkProblem}`;
    });
  }

  async create(spec: InstanceSpec, signal: AbortSignal, options: CreateInstanceOptions = {}): Promise<Instance> {
    signal.throwIfAborted();
    const host = await this.#findHost();
    const [image, files] = await Promise.all([this.#images.find(spec.rootfs, options), host.bootFiles(spec.kernel)]);
    return await this.boot(async () => {
      await this.record(host.store, spec);
      return await this.#start(host, spec, async (directory) => {
        await bootMachine(host, files, { name: spec.id, directory, shape: { ...spec, image }, signal });
      });
    }, signal);
  }

  /** The machine of a prepared instance starts when its saved state is there. */
  async prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    signal.throwIfAborted();
    const { id, maxProcesses } = spec;
    const host = await this.#findHost();
    const shape = { ...spec, image: await this.#images.find(spec.rootfs) };
    await this.record(host.store, spec);
    return {
      id,
      restore: (saved, abort) =>
        this.#start(host, spec, async (directory) => {
          await restoreMachine(host, saved, { name: id, directory, shape, signal: abort });
          const agent = await untilConnected(join(machineDirectory(directory), VSOCK_SOCKET), abort);
          const identity = { hostname: guestHostname(id), maxProcesses };
          await tellGuest(agent, { ...identity, clock: this.clock, signal: abort });
        }),
      destroy: () => this.remove(id),
    };
  }

  /** A saved machine can be restored only with the same devices, image and processor features. */
  async checkpointRequirements(rootfs: string): Promise<CheckpointRequirements> {
    const { firecracker } = await this.#findHost();
    return {
      runtime: `firecracker ${firecracker.version}`,
      architecture: process.arch,
      agentGeneration: String(PROTOCOL_GENERATION),
      image: (await this.#images.find(rootfs)).sha,
      cpuFeatures: cpuFeatures(),
    };
  }

  async list(): Promise<readonly InstanceRecord[]> {
    return await listMachines(findFirecrackerState(this.#options));
  }

  async adopt(id: SandboxId): Promise<Instance> {
    const host = findFirecrackerState(this.#options);
    const { spec } = await host.store.claim(id);
    const api = new ApiClient(join(machineDirectory(host.store.directory(id)), API_SOCKET));
    const { state } = await api.describe(AbortSignal.timeout(ANSWER_MS)).catch((error: unknown) => {
      throw new SandboxError("instance_ended", {
        message: `instance ${id} cannot be adopted: its Firecracker does not answer`,
        hint: "remove the instance, and create a new sandbox",
        cause: error,
      });
    });
    // The program may have died while the machine was paused for a checkpoint.
    if (state === "Paused") await resumeAbandoned(api);
    return this.#instance(host, spec);
  }

  async remove(id: SandboxId): Promise<void> {
    await removeMachine(findFirecrackerState(this.#options), id);
  }

  #instance(host: MachineHost, spec: InstanceSpec): FirecrackerInstance {
    const { connectTimeoutMs } = this.#options;
    return new FirecrackerInstance(host, spec, { clock: this.clock, connectTimeoutMs });
  }

  /** A process that ends during a request leaves the reason in its log. */
  #start(
    host: FirecrackerHost,
    spec: InstanceSpec,
    launch: (directory: string) => Promise<void>,
  ): Promise<FirecrackerInstance> {
    const { id } = spec;
    return this.started(id, async () => {
      await launch(host.store.directory(id)).catch(async (error: unknown) => {
        if (!(error instanceof SandboxError) || error.reason !== "firecracker_gone") throw error;
        throw new SandboxError("boot_failed", {
          message: `the virtual machine of instance ${id} ended while it started: ${(await host.explain(id)) || error.message}`,
          hint: "run `sandpiper doctor`; if it finds no problem, report this as a bug",
          cause: error,
        });
      });
      return this.#instance(host, spec);
    });
  }
}
