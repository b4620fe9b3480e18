import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  type CheckpointRequirements,
  type Clock,
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
import { findAgent } from "../host/find-agent.ts";
import { InstanceStore } from "../host/instance-store.ts";
import { probeHost } from "../host/probe-host.ts";
import { stateDirectory } from "../host/state-directory.ts";
import { startAgentProcess } from "./agent-process.ts";
import { LocalInstance, noCheckpoints } from "./instance.ts";
import { killLeftProcesses } from "./left-processes.ts";

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Shown wherever the provider is described. */
export const LOCAL_WARNING =
  "isolates nothing: code runs as this user, with this user's files and network; for code you trust only";

/** Runs the agent as a child process. It isolates nothing: for development, and for code you trust. */
export class LocalProvider implements Provider {
  readonly name = "local";
  readonly capabilities: ProviderCapabilities = Object.freeze({
    isolation: "none",
    checkpoint: "none",
    limits: Object.freeze({ memory: false, cpu: false, processes: false, disk: false }),
    supportsAdopt: false,
    supportsUsers: false,
    supportsContainers: false,
    network: "host",
  });
  readonly #store: InstanceStore;
  readonly #clock: Clock;
  readonly #running = new Map<SandboxId, LocalInstance>();

  constructor(options: { readonly stateDirectory?: string; readonly clock?: Clock } = {}) {
    this.#store = new InstanceStore(join(options.stateDirectory ?? stateDirectory(), "local/instances"));
    this.#clock = options.clock ?? systemClock;
  }

  probe(): Promise<ProviderStatus> {
    return probeHost(async () => {
      findAgent();
      return LOCAL_WARNING;
    });
  }

  async create(spec: InstanceSpec, signal: AbortSignal): Promise<Instance> {
    signal.throwIfAborted();
    if (spec.rootfs !== "host") throw onlyHost(spec.rootfs);
    const { id } = spec;
    const agent = findAgent();
    const directory = await this.#store.add({ spec, createdAt: this.#clock.now().toISOString() }, {});
    try {
      const home = this.#home(id);
      const journals = join(directory, "journals");
      await Promise.all([mkdir(home), mkdir(journals)]);
      const env = { PATH: process.env["PATH"] ?? DEFAULT_PATH, LANG: "C.UTF-8", HOME: home };
      const child = await startAgentProcess({ agent, home, journals, env });
      signal.throwIfAborted();
      const instance = new LocalInstance({ id, agent: child, cleanUp: () => this.remove(id) });
      this.#running.set(id, instance);
      return instance;
    } catch (error) {
      await this.remove(id);
      throw error;
    }
  }

  async list(): Promise<readonly InstanceRecord[]> {
    const records = await this.#store.records((id) => this.#running.get(id)?.isRunning ?? true);
    // An agent never outlives its program.
    return records.map((record) => ({ ...record, isRunning: record.isRunning && !record.isOrphan }));
  }

  async adopt(id: SandboxId): Promise<Instance> {
    throw new SandboxError("provider_lacks_capability", {
      message: `instance ${id} cannot be adopted: local instances end with the program that created them`,
      hint: "use the provider gvisor for sandboxes that outlive a program",
    });
  }

  async prepare({ id }: InstanceSpec): Promise<PreparedInstance> {
    throw noCheckpoints(`instance ${id} cannot be restored`);
  }

  async checkpointRequirements(): Promise<CheckpointRequirements> {
    throw noCheckpoints("nothing can be restored here");
  }

  async remove(id: SandboxId): Promise<void> {
    await killLeftProcesses(this.#home(id));
    await this.#store.remove(id);
    this.#running.delete(id);
  }

  #home(id: SandboxId): string {
    return join(this.#store.directory(id), "home");
  }
}

function onlyHost(rootfs: string): SandboxError {
  return new SandboxError("rootfs_not_supported", {
    message: `the provider local cannot use the root filesystem ${JSON.stringify(rootfs)}: it supports only this machine's own`,
    hint: 'leave rootfs at "host", or use the provider gvisor',
  });
}
