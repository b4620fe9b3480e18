import { type Sandbox, SandboxError } from "@sandpiper/core";
import type { SandboxId, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { Ownership } from "../ownership/ownership.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { Capacity } from "../sandboxes/capacity.ts";
import { instanceKey } from "../sandboxes/instance-key.ts";
import type { NodePool } from "../sandboxes/node-pool.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import { notReady } from "../sandboxes/sandbox-errors.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";

export interface RebuildsOptions {
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly capacity: Capacity;
  readonly providers: Providers;
  readonly pool: Pick<NodePool, "boot">;
  readonly ownership: Ownership;
}

/** Recreates containers from the current image, keeping their volumes. Their processes end. */
export class Rebuilds {
  readonly #options: RebuildsOptions;

  constructor(options: RebuildsOptions) {
    this.#options = options;
  }

  async rebuild(principal: Principal, id: string): Promise<SandboxResource> {
    const { access, capacity } = this.#options;
    const record = access.find(principal, id, { readOnly: false });
    this.#requireRebuildable(record);
    // A failed sandbox does not count against the limits until it runs again.
    using _ = record.state === "failed" ? capacity.reserve(record, record, 1) : undefined;
    return access.resource(principal, await this.rebuildNow(record.id));
  }

  rebuildNow(id: SandboxId): Promise<SandboxRecord> {
    return this.#options.registry.serialize(id, () => this.#rebuild(id));
  }

  async #rebuild(id: SandboxId): Promise<SandboxRecord> {
    const { providers, registry } = this.#options;
    const record = registry.record(id);
    if (record === undefined) throw noSuchSandbox(id);
    this.#requireRebuildable(record);
    // The image is pulled first; meanwhile the sandbox keeps running.
    await providers.fetchImage(instanceKey(record), new AbortController().signal);
    const epoch = await this.#own(record);
    if (registry.running(id) !== undefined) registry.instance(id).sandbox.halt();
    registry.detach(id);
    registry.change(id, { state: "restoring", epoch, failure: null, endedAt: null });
    try {
      return this.#ready(await this.#replace(record));
    } catch (thrown) {
      registry.fail(record, SandboxError.from(thrown));
      throw thrown;
    }
  }

  async #replace(record: SandboxRecord): Promise<Sandbox> {
    const { providers, pool } = this.#options;
    const { id, provider } = record;
    const keepsVolumes = true;
    await providers.destroy(provider, id, { keepsVolumes });
    // A failed sandbox may have left an instance that the manager does not know.
    await providers.require(provider).remove(id, { keepsVolumes });
    const { signal } = new AbortController();
    return await pool.boot(() => providers.boot(instanceKey(record), { id, signal, keepsVolumes }), signal);
  }

  #ready(sandbox: Sandbox): SandboxRecord {
    const { registry } = this.#options;
    const ready = registry.change(sandbox.id, { state: "ready" });
    registry.attach(sandbox, ready);
    registry.emit("sandbox.rebuilt", ready, { image: ready.image });
    return ready;
  }

  /** A node that started after the sandbox failed has no lease and takes one here. Existing checkpoints are kept. */
  async #own(record: SandboxRecord): Promise<number | null> {
    const { ownership, providers } = this.#options;
    if (ownership.has(record.id)) return record.epoch;
    const saved = await ownership.peek(record.id);
    const requirements = () => providers.checkpointRequirements(record);
    const epoch = await ownership.begin({ ...record, state: "ready", failure: null, endedAt: null }, requirements);
    if (saved !== undefined) {
      const state = await ownership.state(record.id);
      await state.commit({ ...(state.content as SavedSandbox), checkpoints: saved.checkpoints });
    }
    return epoch;
  }

  #requireRebuildable(record: SandboxRecord): void {
    const { id, provider, state, stoppedAt } = record;
    if (this.#options.providers.require(provider).containers === undefined) throw noContainer(id, provider);
    if (stoppedAt !== null) throw notReady(record);
    if (state !== "ready" && state !== "failed") throw cannotRebuild(id, state);
    if (this.#options.registry.hasFailedCreation(id)) throw neverReady(id);
  }
}

function noContainer(id: SandboxId, provider: string): SandboxError {
  return new SandboxError("provider_lacks_capability", {
    message: `sandbox ${id} cannot be rebuilt: provider ${provider} does not run containers`,
    hint: "create a new sandbox",
    details: { id, provider, capability: "supportsContainers" },
  });
}

function neverReady(id: SandboxId): SandboxError {
  return new SandboxError("not_ready", {
    message: `sandbox ${id} cannot be rebuilt: its creation failed, and the node keeps only a small record of it`,
    hint: "create a new sandbox",
    details: { id, state: "failed" },
  });
}

function cannotRebuild(id: SandboxId, state: string): SandboxError {
  return new SandboxError("not_ready", {
    message: `sandbox ${id} is ${state}; only a ready or failed sandbox can be rebuilt`,
    hint: state === "paused" || state === "stopped" ? "resume it first" : "wait until it is ready",
    details: { id, state },
  });
}
