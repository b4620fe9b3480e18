import { type Clock, type KeyedMutex, type Sandbox, SandboxError } from "@sandpiper/core";
import type { SandboxId, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { Custody } from "../checkpoints/custody.ts";
import type { SavedSandbox } from "../checkpoints/saved-sandbox.ts";
import type { EventLog } from "../events/event-log.ts";
import type { NodePool } from "../pool/node-pool.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import { instanceKey } from "./instance-key.ts";
import type { LiveSandboxes } from "./live-sandboxes.ts";
import type { NodeService } from "./node-service.ts";
import type { Providers } from "./providers.ts";

export interface RebuildsOptions {
  readonly service: Pick<NodeService, "find" | "reserve" | "resource">;
  readonly providers: Providers;
  readonly pool: Pick<NodePool, "boot">;
  readonly records: SandboxRecords;
  readonly live: LiveSandboxes;
  readonly custody: Custody;
  readonly turns: KeyedMutex<SandboxId>;
  readonly events: EventLog;
  readonly clock: Clock;
}

/** Gives sandboxes a new container of what their image means now. Their volumes stay, what ran in them ends. */
export class Rebuilds {
  readonly #options: RebuildsOptions;

  constructor(options: RebuildsOptions) {
    this.#options = options;
  }

  async rebuild(principal: Principal, id: string): Promise<SandboxResource> {
    const { service } = this.#options;
    const record = service.find(principal, id, { readOnly: false });
    this.#requireRebuildable(record);
    // One that has failed does not count any more until it is there again.
    using _ = record.state === "failed" ? service.reserve(principal, record, 1) : undefined;
    return service.resource(principal, await this.rebuildNow(record.id));
  }

  /** Also where nobody has asked for it. */
  rebuildNow(id: SandboxId): Promise<SandboxRecord> {
    return this.#options.turns.run(id, () => this.#rebuild(id));
  }

  async #rebuild(id: SandboxId): Promise<SandboxRecord> {
    const { providers, records, live } = this.#options;
    const record = records.get(id);
    if (record === undefined) throw noSuchSandbox(id);
    this.#requireRebuildable(record);
    // What can fail without harm comes first: until the image is here, the sandbox runs on.
    await providers.fetchImage(instanceKey(record), new AbortController().signal);
    const epoch = await this.#takeCustody(record);
    if (live.get(id) !== undefined) live.require(id).sandbox.halt();
    live.remove(id);
    records.change(id, { state: "restoring", epoch, failure: null, endedAt: null });
    try {
      return this.#ready(await this.#replace(record));
    } catch (thrown) {
      this.#failed(record, SandboxError.from(thrown));
      throw thrown;
    }
  }

  async #replace(record: SandboxRecord): Promise<Sandbox> {
    const { providers, pool } = this.#options;
    const { id, provider } = record;
    const keepsVolumes = true;
    await providers.destroy(provider, id, { keepsVolumes });
    // Of one that has failed, something may still be there that no manager knows.
    await providers.require(provider).remove(id, { keepsVolumes });
    const { signal } = new AbortController();
    return await pool.boot(() => providers.boot(instanceKey(record), { id, signal, keepsVolumes }), signal);
  }

  #ready(sandbox: Sandbox): SandboxRecord {
    const { records, live, events } = this.#options;
    const ready = records.change(sandbox.id, { state: "ready" });
    live.add(sandbox, ready);
    events.emit({
      kind: "sandbox.rebuilt",
      tenant: ready.tenant,
      sandboxId: ready.id,
      details: { image: ready.image },
    });
    return ready;
  }

  #failed({ id, tenant }: SandboxRecord, { code, reason, message }: SandboxError): void {
    const { records, events, clock } = this.#options;
    const failure = { code, reason, message };
    records.change(id, { state: "failed", failure, endedAt: clock.now() });
    events.emit({ kind: "sandbox.failed", tenant, sandboxId: id, details: failure });
  }

  /** A node that was started after a sandbox had failed has no lease on it; what was saved of it stays saved. */
  async #takeCustody(record: SandboxRecord): Promise<number | null> {
    const { custody } = this.#options;
    if (custody.has(record.id)) return record.epoch;
    const saved = await custody.peek(record.id);
    const epoch = await custody.begin({ ...record, state: "ready", failure: null, endedAt: null });
    if (saved !== undefined) {
      const state = await custody.state(record.id);
      await state.commit({ ...(state.content as SavedSandbox), checkpoints: saved.checkpoints });
    }
    return epoch;
  }

  #requireRebuildable({ id, provider, state }: SandboxRecord): void {
    if (this.#options.providers.require(provider).containers === undefined) throw noContainer(id, provider);
    if (state !== "ready" && state !== "failed") throw cannotRebuild(id, state);
  }
}

function noContainer(id: SandboxId, provider: string): SandboxError {
  return new SandboxError("unimplemented", {
    reason: "provider_lacks_capability",
    message: `sandbox ${id} is no container, so there is nothing to rebuild: provider ${provider} makes none`,
    hint: "create a new sandbox",
    details: { id, provider, capability: "supportsContainers" },
  });
}

function cannotRebuild(id: SandboxId, state: string): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "not_ready",
    message: `sandbox ${id} is ${state}, and only one that is ready or has failed can be rebuilt`,
    hint: state === "paused" || state === "stopped" ? "resume it first" : "wait until it is ready",
    details: { id, state },
  });
}
