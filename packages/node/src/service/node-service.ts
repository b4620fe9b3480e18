import { createHash } from "node:crypto";
import { type Clock, type KeyedMutex, type Sandbox, SandboxError } from "@sandpiper/core";
import {
  type CreateSandboxBody,
  createSandboxId,
  isSandboxId,
  type ListSandboxesQuery,
  type SandboxId,
  type SandboxPage,
  type SandboxResource,
  type UpdateSandboxBody,
} from "@sandpiper/protocol";
import { isAdmin, mayAccess, requireAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import { requireQuota } from "../auth/quota.ts";
import type { Custody } from "../checkpoints/custody.ts";
import type { QuotaReservation, SharedQuotas } from "../cluster/shared-quotas.ts";
import type { EventLog } from "../events/event-log.ts";
import type { NodePool } from "../pool/node-pool.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { IdempotencyRecords, SandboxChange, SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import { CreateOnce } from "./create-once.ts";
import { instanceKey } from "./instance-key.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import type { LiveSandboxes } from "./live-sandboxes.ts";
import { cannotPause, checkpointPolicy, type NewSandbox, newSandbox, type SandboxDefaults } from "./new-sandbox.ts";
import type { Providers } from "./providers.ts";
import { limitReached, Reservations, sum } from "./reservations.ts";
import { ended, ending, notReady } from "./sandbox-errors.ts";
import { sandboxFilter } from "./sandbox-filter.ts";
import { sandboxResource } from "./sandbox-resource.ts";
import type { CreateOptions, OpenOptions, SandboxService } from "./sandbox-service.ts";

export interface NodeServiceOptions {
  readonly providers: Providers;
  readonly pool: NodePool;
  readonly records: SandboxRecords;
  readonly idempotency: IdempotencyRecords;
  /** All of what it writes, or nothing. */
  readonly transaction: (work: () => void) => void;
  readonly events: EventLog;
  readonly live: LiveSandboxes;
  readonly custody: Custody;
  /** Whoever changes what a sandbox is waits for its turn. */
  readonly turns: KeyedMutex<SandboxId>;
  /** Has whoever runs the sandbox next find it as it is now. */
  readonly saveRecord: (record: SandboxRecord) => Promise<void>;
  /** Removes what is saved of a sandbox that was destroyed. */
  readonly forgetSaved: (id: SandboxId) => Promise<void>;
  /** Kept together with other nodes; undefined: there are none. */
  readonly quotas?: Pick<SharedQuotas, "reserve" | "ended"> | undefined;
  /** Makes a sandbox from a checkpoint. */
  readonly createFrom: (principal: Principal, body: CreateSandboxBody, checkpoint: string) => Promise<SandboxResource>;
  /** Of this node, as others know it; null: there are no others. */
  readonly nodeId: string | null;
  readonly tokenOf: (id: SandboxId) => string;
  readonly defaults: SandboxDefaults;
  /** 0: no limit. */
  readonly maxSandboxes: number;
  readonly clock: Clock;
  readonly observeCreate?: ((provider: string, seconds: number, isWarm: boolean) => void) | undefined;
}

interface Owner {
  readonly tenant: string;
  readonly keyId: string;
}

/** Makes, finds, changes and destroys sandboxes for those who may. */
export class NodeService implements SandboxService {
  readonly #options: NodeServiceOptions;
  readonly #reservations = new Reservations();
  readonly #boots = new Map<SandboxId, Promise<SandboxRecord>>();
  readonly #once: CreateOnce;
  readonly #removals = new Map<SandboxId, Promise<void>>();

  constructor(options: NodeServiceOptions) {
    this.#options = options;
    this.#once = new CreateOnce(options);
  }

  async create(principal: Principal, body: CreateSandboxBody, options: CreateOptions = {}): Promise<SandboxResource> {
    requireAccess(principal, "sandboxes", { readOnly: false });
    if (principal.kind !== "key") throw new RangeError("a sandbox's token passed an access check for keys");
    const { providers, defaults, createFrom } = this.#options;
    if (body.checkpoint !== undefined) return await createFrom(principal, body, body.checkpoint);
    const wanted = newSandbox(body, { defaults, providers: providers.byName });
    const { idempotencyKey: key } = options;
    if (key === undefined) return this.resource(principal, await this.#create(principal, wanted, options));
    const fingerprint = createHash("sha256").update(JSON.stringify(body)).digest("hex");
    const request = { tenant: principal.tenant, key, fingerprint };
    const create = (noted: (id: SandboxId) => void) => this.#create(principal, wanted, options, noted);
    return this.resource(principal, await this.#once.create(request, create, options.signal));
  }

  get(principal: Principal, id: string): SandboxResource {
    return this.resource(principal, this.find(principal, id, { readOnly: true }));
  }

  list(principal: Principal, query: ListSandboxesQuery): SandboxPage {
    requireAccess(principal, "read", { readOnly: true });
    const { items, nextCursor } = this.#options.records.list(sandboxFilter(principal, query));
    return { items: items.map((record) => this.resource(principal, record)), nextCursor };
  }

  async update(principal: Principal, id: string, body: UpdateSandboxBody): Promise<SandboxResource> {
    const { providers, records, live, clock, events, turns, saveRecord } = this.#options;
    const record = this.find(principal, id, { readOnly: false });
    if (record.endedAt !== null) throw ended(record);
    if (this.#removals.has(record.id)) throw ending(record);
    const { checkpoint } = providers.byName.get(record.provider)?.capabilities ?? { checkpoint: "none" };
    if (body.onExpiry === "pause" && checkpoint === "none") throw cannotPause(record.provider);
    const { ttlMs } = body;
    const expiry = ttlMs === undefined ? {} : { ttlMs, expiresAt: expiresAt(clock.now(), ttlMs) };
    const policy = "checkpointPolicy" in body ? { checkpointPolicy: checkpointPolicy(body.checkpointPolicy) } : {};
    // In its turn: a checkpoint that is under way writes down what it began with.
    const changed = await turns.run(record.id, async () => {
      const after = records.change(record.id, { ...given(body), ...expiry, ...policy });
      live.update(after);
      await saveRecord(after);
      return after;
    });
    events.emit({ kind: "sandbox.updated", tenant: record.tenant, sandboxId: record.id });
    return this.resource(principal, changed);
  }

  async remove(principal: Principal, id: string): Promise<void> {
    const record = this.find(principal, id, { readOnly: false });
    if (record.state === "destroyed") throw noSuchSandbox(id);
    await this.destroy(record, {});
  }

  /** Two that destroy it at once both wait for the one destruction. */
  destroy(record: SandboxRecord, details: { readonly expired?: "ttl" | "idle" }): Promise<void> {
    const running = this.#removals.get(record.id);
    if (running !== undefined) return running;
    const { turns } = this.#options;
    const removal = turns
      .run(record.id, () => this.#destroy(record, details))
      .finally(() => this.#removals.delete(record.id));
    this.#removals.set(record.id, removal);
    return removal;
  }

  /** Resolves when what was begun is done or undone, as its callers have left it. */
  async settled(): Promise<void> {
    while (this.#boots.size + this.#removals.size > 0) {
      await Promise.allSettled([...this.#boots.values(), ...this.#removals.values()]);
    }
  }

  open(principal: Principal, id: string, options: OpenOptions = {}): LiveSandbox {
    const { readOnly = false } = options;
    const live = this.#options.live.get(id as SandboxId);
    // Every message of every client passes here. What is not theirs takes the way of what is not there.
    const isTheirs = live !== undefined && (isAdmin(principal) || live.record.tenant === principal.tenant);
    if (isTheirs && !this.#removals.has(live.id)) {
      requireAccess(principal, "sandbox", { readOnly, sandbox: live.record });
      return live;
    }
    const record = this.find(principal, id, { readOnly });
    if (this.#removals.has(record.id)) throw ending(record);
    throw record.endedAt === null ? notReady(record) : ended(record);
  }

  /** `noted` is called together with the making of the record: both are kept, or neither. */
  async #create(
    owner: Owner & Principal,
    wanted: NewSandbox,
    options: CreateOptions,
    noted?: (id: SandboxId) => void,
  ): Promise<SandboxRecord> {
    const { records, pool, providers, clock, observeCreate } = this.#options;
    const startedAtMs = clock.monotonicMs();
    const signal = options.signal ?? new AbortController().signal;
    using reservation = this.reserve(owner, { ...wanted, keyId: owner.keyId }, 1);
    using room = await this.reserveShared(owner, wanted);
    const key = instanceKey({ ...wanted, tenant: owner.tenant });
    const warm = await pool.claim(key, signal);
    const id = warm?.id ?? createSandboxId();
    const record = this.#record(id, owner, wanted, warm === undefined ? "creating" : "ready");
    try {
      signal.throwIfAborted();
      await room?.bind(id);
      this.#options.transaction(() => {
        records.add(record);
        noted?.(id);
      });
    } catch (thrown) {
      // Without a record a claimed instance would belong to nobody.
      if (warm !== undefined) await providers.destroy(record.provider, warm.id);
      throw thrown;
    }
    // From here on the record is what counts it.
    reservation[Symbol.dispose]();
    this.#emit("sandbox.created", record);
    options.onId?.(id, this.#options.tokenOf(id));
    const custodyBegun = this.#beginCustody(record);
    // Whoever waits for it is told when the boot is over.
    custodyBegun.catch(() => {});
    try {
      const ready = warm === undefined ? await this.#boot(record, signal) : this.#ready(warm, record);
      await custodyBegun;
      return ready;
    } catch (thrown) {
      const custodyError = await custodyBegun.then(
        () => undefined,
        (refused) => SandboxError.from(refused),
      );
      // Without custody it must not run, and nobody has been told that it does.
      if (custodyError !== undefined) await this.#undo(id, custodyError);
      else await this.#options.forgetSaved(id);
      throw thrown;
    } finally {
      observeCreate?.(record.provider, (clock.monotonicMs() - startedAtMs) / 1000, warm !== undefined);
    }
  }

  async #undo(id: SandboxId, error: SandboxError): Promise<void> {
    const { live, records, providers } = this.#options;
    live.remove(id);
    const record = records.get(id);
    if (record === undefined) return;
    await providers.destroy(record.provider, id);
    if (record.endedAt === null) this.#failed(record, error);
  }

  /** From here on no other node runs it. */
  async #beginCustody(record: SandboxRecord): Promise<void> {
    const { custody, records, live } = this.#options;
    const epoch = await custody.begin({ ...record, state: "ready" });
    if (epoch !== null) live.update(records.change(record.id, { epoch }));
  }

  get #count(): number {
    return this.#options.live.count + this.#boots.size + this.#reservations.count;
  }

  #boot(record: SandboxRecord, signal: AbortSignal): Promise<SandboxRecord> {
    const boot = this.#bootNow(record, signal).finally(() => this.#boots.delete(record.id));
    this.#boots.set(record.id, boot);
    return boot;
  }

  async #bootNow(record: SandboxRecord, signal: AbortSignal): Promise<SandboxRecord> {
    const { pool, providers, records } = this.#options;
    try {
      const key = instanceKey(record);
      await providers.fetchImage(key, signal);
      const boot = () => providers.boot(key, { id: record.id, signal });
      const sandbox = await pool.boot(boot, signal);
      return this.#ready(sandbox, records.change(record.id, { state: "ready" }));
    } catch (thrown) {
      this.#failed(record, SandboxError.from(thrown));
      throw thrown;
    }
  }

  #failed(record: SandboxRecord, { code, reason, message }: SandboxError): void {
    const { records, clock } = this.#options;
    const failure = { code, reason, message };
    records.change(record.id, { state: "failed", failure, endedAt: clock.now() });
    this.#emit("sandbox.failed", record, failure);
  }

  #ready(sandbox: Sandbox, record: SandboxRecord): SandboxRecord {
    this.#options.live.add(sandbox, record);
    this.#emit("sandbox.ready", record);
    return record;
  }

  async #destroy(record: SandboxRecord, { expired }: { readonly expired?: "ttl" | "idle" }): Promise<void> {
    const { live, records, providers, clock, forgetSaved, quotas } = this.#options;
    await this.#boots.get(record.id)?.catch(() => {});
    live.remove(record.id);
    // By its id, so that a destruction that failed can be asked for again: nobody else knows the instance any more.
    try {
      await providers.remove(record.provider, record.id);
    } catch (thrown) {
      this.#failed(record, SandboxError.from(thrown));
      throw thrown;
    }
    await forgetSaved(record.id);
    quotas?.ended(record.keyId, record.id);
    records.change(record.id, { state: "destroyed", endedAt: record.endedAt ?? clock.now() });
    if (expired !== undefined) this.#emit("sandbox.expired", record, { reason: expired });
    this.#emit("sandbox.destroyed", record);
  }

  #record(id: SandboxId, { tenant, keyId }: Owner, wanted: NewSandbox, state: SandboxRecord["state"]): SandboxRecord {
    const createdAt = this.#options.clock.now();
    const ends = { expiresAt: expiresAt(createdAt, wanted.ttlMs), endedAt: null, failure: null };
    const past = { rolledBackTo: null, rollbacks: 0, epoch: null };
    return { ...wanted, id, tenant, keyId, state, createdAt, ...ends, ...past };
  }

  /** Throws `not_found` also for what belongs to others. */
  find(principal: Principal, id: string, { readOnly }: { readonly readOnly: boolean }): SandboxRecord {
    // What belongs to others is not even read: how long that takes would tell that it is there.
    const tenant = isAdmin(principal) ? undefined : principal.tenant;
    const record = isSandboxId(id) ? this.#options.records.get(id, { tenant }) : undefined;
    if (record === undefined) throw noSuchSandbox(id);
    requireAccess(principal, "sandbox", { readOnly, sandbox: record });
    return record;
  }

  /** A token may do everything with its sandbox, so it is told only to those who may too. */
  resource(principal: Principal, record: SandboxRecord, node = this.#options.nodeId): SandboxResource {
    const { tokenOf, live } = this.#options;
    const addresses = live.get(record.id)?.addresses ?? {};
    const mayUse = mayAccess(principal, "sandbox", { readOnly: false, sandbox: record });
    return sandboxResource(record, { token: mayUse ? tokenOf(record.id) : null, node, addresses });
  }

  /** Sets aside what so many sandboxes like this one take, or throws when there is no room for them. */
  reserve(
    principal: Principal,
    { memoryMib, vcpuCount, keyId }: Pick<SandboxRecord, "memoryMib" | "vcpuCount" | "keyId">,
    count: number,
  ): Disposable {
    const { records, maxSandboxes } = this.#options;
    const owner = principal.kind === "key" ? principal.keyId : keyId;
    if (maxSandboxes > 0 && this.#count + count > maxSandboxes) throw limitReached(maxSandboxes);
    const taken = { sandboxes: count, memoryMib: memoryMib * count, vcpuCount: vcpuCount * count };
    requireQuota(principal, sum(records.usage(owner), this.#reservations.of(owner)), taken);
    return this.#reservations.reserve(owner, taken);
  }

  /** Room among all nodes, for one sandbox. */
  async reserveShared(
    principal: Principal,
    { memoryMib, vcpuCount }: Pick<SandboxRecord, "memoryMib" | "vcpuCount">,
  ): Promise<QuotaReservation | undefined> {
    const { quotas } = this.#options;
    if (quotas === undefined || principal.kind !== "key") return undefined;
    return await quotas.reserve(principal, { sandboxes: 1, memoryMib, vcpuCount });
  }

  requireNotEnded(record: SandboxRecord): void {
    if (record.endedAt !== null) throw ended(record);
  }

  #emit(kind: Parameters<EventLog["emit"]>[0]["kind"], record: SandboxRecord, details = {}): void {
    this.#options.events.emit({ kind, tenant: record.tenant, sandboxId: record.id, details });
  }
}

/** Without what was not said. */
function given(body: UpdateSandboxBody): SandboxChange {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

function expiresAt(from: Date, ttlMs: number | null): Date | null {
  return ttlMs === null ? null : new Date(from.getTime() + ttlMs);
}
