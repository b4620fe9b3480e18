import {
  type CheckpointRequirements,
  type Clock,
  type CreateInstanceOptions,
  type DestroyOptions,
  type Instance,
  type InstanceRecord,
  type InstanceSpec,
  type Machines,
  type PreparedInstance,
  type Provider,
  type ProviderCapabilities,
  type ProviderStatus,
  pause,
  SandboxError,
  systemClock,
} from "@sandpiper/core";
import { PROTOCOL_GENERATION, type SandboxId } from "@sandpiper/protocol";
import { readCheckpoint } from "./checkpoint-file.ts";
import type { MockContainers } from "./containers.ts";
import type { MockFaults } from "./faults.ts";
import { MockInstance } from "./instance.ts";

interface Entry {
  readonly instance: MockInstance;
  readonly spec: InstanceSpec;
  readonly createdAt: Date;
  owner: MockProvider;
}

export interface MockProviderOptions {
  readonly clock?: Clock;
  readonly faults?: MockFaults;
  /** Makes it a provider of containers. */
  readonly containers?: MockContainers | undefined;
  /** Makes it a provider of machines. */
  readonly machines?: Machines | undefined;
  /** What its checkpoints keep; memory by default. */
  readonly checkpoint?: "memory" | "filesystem" | undefined;
}

/** Runs instances in memory for tests. It isolates nothing, and every step can be made to fail. */
export class MockProvider implements Provider {
  readonly name = "mock";
  readonly capabilities: ProviderCapabilities;
  readonly containers: MockContainers | undefined;
  readonly machines: Machines | undefined;
  readonly faults: MockFaults;
  readonly #clock: Clock;
  /** The host that all its programs share. */
  readonly #host: Map<SandboxId, Entry>;
  #isAlive = true;

  constructor(options: MockProviderOptions = {}, host: Map<SandboxId, Entry> = new Map()) {
    this.faults = options.faults ?? {};
    this.containers = options.containers;
    this.machines = options.machines;
    const { checkpoint = "memory" } = options;
    this.capabilities = {
      isolation: "none",
      checkpoint,
      limits: { memory: false, cpu: false, processes: false, disk: false },
      supportsAdopt: true,
      supportsUsers: false,
      supportsContainers: options.containers !== undefined,
      network: "redirected",
    };
    this.#clock = options.clock ?? systemClock;
    this.#host = host;
  }

  async probe(): Promise<ProviderStatus> {
    return { available: true, detail: "in memory, isolates nothing, for tests only" };
  }

  create(spec: InstanceSpec, signal: AbortSignal, { onProgress }: CreateInstanceOptions = {}): Promise<Instance> {
    return this.#boot(spec, { isPrepared: false, onProgress }, signal);
  }

  async prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance> {
    const instance = await this.#boot(spec, { isPrepared: true }, signal);
    const restore = async (directory: string, abort: AbortSignal) => {
      const { restoreDelayMs, restoreFailure } = this.faults;
      if (restoreDelayMs !== undefined) await pause(this.#clock, restoreDelayMs, abort);
      abort.throwIfAborted();
      if (restoreFailure !== undefined) throw restoreFailure;
      instance.restore(await readCheckpoint(directory));
      return instance;
    };
    return {
      id: spec.id,
      restore: (directory, abort) =>
        restore(directory, abort).catch(async (thrown: unknown) => {
          await instance.destroy();
          throw thrown;
        }),
      destroy: () => instance.destroy(),
    };
  }

  async checkpointRequirements(rootfs: string): Promise<CheckpointRequirements> {
    const runtime = `mock ${this.faults.release ?? "1"}`;
    return { runtime, agentGeneration: String(PROTOCOL_GENERATION), image: rootfs };
  }

  async list(): Promise<readonly InstanceRecord[]> {
    if (this.faults.listFailure !== undefined) throw this.faults.listFailure;
    return [...this.#host.values()].map(({ instance, spec, createdAt, owner }) => ({
      id: spec.id,
      spec,
      createdAt,
      isRunning: instance.isRunning,
      isOrphan: !owner.#isAlive,
    }));
  }

  async adopt(id: SandboxId): Promise<Instance> {
    const entry = this.#host.get(id);
    if (entry === undefined) {
      throw new SandboxError("no_such_instance", { message: `the mock has no instance ${id}` });
    }
    if (entry.owner.#isAlive) {
      const message = `instance ${id} cannot be adopted: its program is alive`;
      throw new SandboxError("instance_owned", { message });
    }
    if (!entry.instance.isRunning) {
      const message = `instance ${id} cannot be adopted: it has ended`;
      throw new SandboxError("instance_ended", { message });
    }
    entry.owner = this;
    return entry.instance;
  }

  async remove(id: SandboxId, options: DestroyOptions = {}): Promise<void> {
    await this.#host.get(id)?.instance.destroy(options);
    this.containers?.drop(id, options);
  }

  /** The instance of a sandbox, so that a test can break it. */
  instance(id: SandboxId): MockInstance {
    const entry = this.#host.get(id);
    if (entry === undefined) throw new Error(`the mock has no instance ${id}`);
    return entry.instance;
  }

  leftovers(id: SandboxId): readonly string[] {
    return this.#host.has(id) ? [`instance ${id}`] : [];
  }

  /** The number of instances, running or not. */
  get size(): number {
    return this.#host.size;
  }

  /** Ends the program that uses this provider; returns the provider of the next program on the same host. */
  die(): MockProvider {
    this.#isAlive = false;
    for (const { instance, owner } of this.#host.values()) if (owner === this) instance.dropChannel();
    return this.sibling();
  }

  /** The provider of another program on the same host. */
  sibling(): MockProvider {
    const { faults, containers } = this;
    const checkpoint = this.#keepsProcesses ? "memory" : "filesystem";
    return new MockProvider({ clock: this.#clock, faults, containers, checkpoint }, this.#host);
  }

  get #keepsProcesses(): boolean {
    return this.capabilities.checkpoint === "memory";
  }

  async #boot(
    spec: InstanceSpec,
    how: CreateInstanceOptions & { readonly isPrepared: boolean },
    signal: AbortSignal,
  ): Promise<MockInstance> {
    const { bootDelayMs, bootFailure } = this.faults;
    const instance = this.#add(spec, how);
    try {
      if (bootDelayMs !== undefined) await pause(this.#clock, bootDelayMs, signal);
      signal.throwIfAborted();
      if (bootFailure !== undefined) throw bootFailure;
      await this.containers?.add(spec, { signal, onProgress: how.onProgress });
      return instance;
    } catch (thrown) {
      this.#host.delete(spec.id);
      throw thrown;
    }
  }

  #add(spec: InstanceSpec, { isPrepared }: { readonly isPrepared: boolean }): MockInstance {
    if (this.#host.has(spec.id)) {
      const message = `instance ${spec.id} already exists`;
      throw new SandboxError("instance_exists", { message });
    }
    const instance = new MockInstance({
      spec,
      isPrepared,
      clock: this.#clock,
      faults: this.faults,
      keepsProcesses: this.#keepsProcesses,
      addresses: this.containers?.addressesOf(spec),
      removed: (options) => {
        this.#host.delete(spec.id);
        this.containers?.drop(spec.id, options);
      },
    });
    this.#host.set(spec.id, { instance, spec, createdAt: this.#clock.now(), owner: this });
    return instance;
  }
}
