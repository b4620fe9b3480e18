import { type Clock, type Containers, type Sandbox, SandboxError } from "@sandpiper/core";
import type { SandboxResource, StopSandboxBody } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { Checkpoints } from "../checkpoints/checkpoints.ts";
import type { Ownership } from "../ownership/ownership.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import { ended } from "../sandboxes/sandbox-errors.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";

/** As `docker stop` has it. */
const DEFAULT_TIMEOUT_MS = 10_000;

export interface StopsOptions {
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly providers: Providers;
  readonly ownership: Ownership;
  readonly checkpoints: Checkpoints;
  readonly clock: Clock;
}

/** Stops containers at their owner's request and starts them again. Files stay, processes end. */
export class Stops {
  readonly #options: StopsOptions;

  constructor(options: StopsOptions) {
    this.#options = options;
  }

  /** Processes get SIGTERM, and SIGKILL after the timeout. Succeeds if the sandbox is stopped already. */
  async stop(principal: Principal, id: string, body: StopSandboxBody): Promise<SandboxResource> {
    const { access, registry } = this.#options;
    const record = access.find(principal, id, { readOnly: false });
    const containers = this.#requireContainers(record);
    const { timeoutMs = DEFAULT_TIMEOUT_MS } = body;
    const stopped = await registry.serialize(record.id, () => this.#stop(record, containers, timeoutMs));
    return access.resource(principal, stopped);
  }

  /** Also resumes a sandbox that was paused, or that its node stopped. */
  async start(principal: Principal, id: string): Promise<SandboxResource> {
    const { access, registry, checkpoints } = this.#options;
    const record = access.find(principal, id, { readOnly: false });
    if (record.stoppedAt === null) return await checkpoints.resume(principal, id);
    const ready = await registry.serialize(record.id, () => this.#start(this.#current(record)));
    return access.resource(principal, ready);
  }

  /**
   * Starts the container of a stopped sandbox for a save, which needs it running, if this node has one. After a failed save
   * it is stopped again. The caller holds the sandbox's mutex.
   */
  async whileStarted(record: SandboxRecord, save: () => Promise<void>): Promise<void> {
    const { registry, providers } = this.#options;
    const sandbox = await this.#startContainer(record);
    if (sandbox !== undefined) registry.attach(sandbox, record);
    try {
      await save();
    } catch (thrown) {
      registry.detach(record.id);
      if (sandbox !== undefined) await providers.require(record.provider).containers?.stop(record.id, { timeoutMs: 0 });
      throw thrown;
    }
  }

  async #stop(before: SandboxRecord, containers: Containers, timeoutMs: number): Promise<SandboxRecord> {
    const { registry, clock } = this.#options;
    const record = this.#current(before);
    if (record.stoppedAt !== null) return record;
    if (record.endedAt !== null) throw ended(record);
    if (registry.running(record.id) === undefined) throw cannotStop(record);
    const { sandbox } = registry.instance(record.id);
    registry.detach(record.id);
    // Recorded first: if the node dies now, its next start stops the container.
    const stopped = registry.change(record.id, { state: "stopped", stoppedAt: clock.now() });
    try {
      await containers.stop(record.id, { timeoutMs });
      await sandbox.closed;
    } catch (thrown) {
      const ready = registry.change(record.id, { state: "ready", stoppedAt: null });
      await registry.attachWithProcesses(sandbox, ready);
      throw thrown;
    }
    await this.#saveStop(stopped);
    registry.emit("sandbox.stopped", stopped);
    return stopped;
  }

  async #start(record: SandboxRecord): Promise<SandboxRecord> {
    const { registry, checkpoints } = this.#options;
    const { id, stoppedAt } = record;
    if (stoppedAt === null) return record;
    const sandbox = await this.#startContainer(record);
    const started = registry.change(id, { state: sandbox === undefined ? "stopped" : "ready", stoppedAt: null });
    try {
      if (sandbox !== undefined) registry.attach(sandbox, started);
      else await checkpoints.restoreNewest(started);
    } catch (thrown) {
      registry.change(id, { state: "stopped", stoppedAt });
      throw thrown;
    }
    const ready = this.#current(record);
    await this.#saveStop(ready);
    registry.emit("sandbox.started", ready);
    return ready;
  }

  /** Undefined if this node has no container of the sandbox, which then is in the store. */
  async #startContainer({ id, provider }: SandboxRecord): Promise<Sandbox | undefined> {
    const { providers } = this.#options;
    const { containers } = providers.require(provider);
    try {
      await containers?.start(id);
    } catch (thrown) {
      if (SandboxError.from(thrown).reason === "no_such_container") return undefined;
      throw thrown;
    }
    try {
      return await providers.manager(provider).adoptStarted(id);
    } catch (thrown) {
      await containers?.stop(id, { timeoutMs: 0 });
      throw thrown;
    }
  }

  /** Copies `stoppedAt` to the state in the store, for the node that takes the sandbox over. */
  async #saveStop({ id, stoppedAt }: SandboxRecord): Promise<void> {
    const state = await this.#options.ownership.state(id);
    if (state.content === undefined) return;
    await state.commit({ ...state.content, record: { ...state.content.record, stoppedAt } });
  }

  #current({ id }: SandboxRecord): SandboxRecord {
    return this.#options.registry.record(id) as SandboxRecord;
  }

  #requireContainers({ id, provider, fidelity }: SandboxRecord): Containers {
    const { containers } = this.#options.providers.require(provider);
    if (containers !== undefined) return containers;
    throw new SandboxError("provider_lacks_capability", {
      message: `sandbox ${id} cannot be stopped: provider ${provider} does not run containers`,
      hint: fidelity === "none" ? "destroy it instead" : "pause it instead; resume continues it",
      details: { id, provider, capability: "supportsContainers" },
    });
  }
}

function cannotStop({ id, state }: SandboxRecord): SandboxError {
  return new SandboxError("not_ready", {
    message: `sandbox ${id} is ${state}; only a ready sandbox can be stopped`,
    hint: state === "paused" ? "it runs nothing; resume it first" : "wait until it is ready",
    details: { id, state },
  });
}
