import { createHash } from "node:crypto";
import { type Clock, type DestroyOptions, type Sandbox, SandboxError } from "@sandpiper/core";
import {
  type CreateSandboxBody,
  createSandboxId,
  type DeleteSandboxQuery,
  type ListSandboxesQuery,
  type SandboxHealth,
  type SandboxId,
  type SandboxPage,
  type SandboxResource,
  type UpdateSandboxBody,
} from "@sandpiper/protocol";
import { requireAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { RateLimit } from "../auth/rate-limit.ts";
import type { Ownership } from "../ownership/ownership.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { SandboxChange, SandboxRecord } from "../records/sandbox-record.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import type { CheckpointStore } from "../store/checkpoint-store.ts";
import type { Capacity } from "./capacity.ts";
import { CreateOnce, type CreateOnceOptions } from "./create-once.ts";
import { instanceKey } from "./instance-key.ts";
import type { NetworkPolicies } from "./network-policies.ts";
import {
  cannotPause,
  checkpointPolicy,
  type NewSandbox,
  newSandbox,
  requireRedirected,
  type SandboxDefaults,
} from "./new-sandbox.ts";
import type { NodePool } from "./node-pool.ts";
import type { NodeVolumes } from "./node-volumes.ts";
import type { Providers } from "./providers.ts";
import type { SandboxAccess } from "./sandbox-access.ts";
import { beingDestroyed, ended, secretsNeedKey } from "./sandbox-errors.ts";
import { sandboxFilter } from "./sandbox-filter.ts";
import type { SandboxNames } from "./sandbox-names.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";
import { saveRecord } from "./save-record.ts";

export interface SandboxServiceOptions extends CreateOnceOptions {
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly capacity: Capacity;
  readonly providers: Providers;
  readonly pool: NodePool;
  readonly policies: NetworkPolicies;
  readonly volumes: NodeVolumes;
  readonly names: SandboxNames;
  readonly secrets: Pick<SecretService, "uses">;
  readonly ownership: Ownership;
  readonly checkpointStore: CheckpointStore;
  /** Commits all writes of `work`, or none. */
  readonly transaction: (work: () => void) => void;
  readonly tokenOf: (id: SandboxId) => string;
  /** Counts creations that fail, by key. */
  readonly failedCreates: RateLimit;
  readonly onError: (error: SandboxError, id: SandboxId) => void;
  readonly defaults: SandboxDefaults;
  readonly clock: Clock;
  readonly observeCreate?: ((provider: string, seconds: number, isWarm: boolean) => void) | undefined;
}

export interface CreateOptions {
  readonly idempotencyKey?: string | undefined;
  /** Aborted when the caller disconnects: the node then undoes the creation. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the id before the instance boots. */
  readonly onId?: ((id: SandboxId, token: string) => void) | undefined;
}

interface DestroyDetails extends DestroyOptions {
  /** Which of its time limits was reached. */
  readonly expired?: "ttl" | "idle";
}

/** Records of failed creations that a tenant can still look up. */
const KEPT_FAILED_CREATIONS = 100;

type KeyHolder = Extract<Principal, { kind: "key" }>;

/** Creates, lists, updates and destroys sandboxes for callers. It checks all input before it changes anything. */
export class SandboxService {
  readonly #options: SandboxServiceOptions;
  readonly #boots = new Map<SandboxId, Promise<SandboxRecord>>();
  readonly #once: CreateOnce;

  constructor(options: SandboxServiceOptions) {
    this.#options = options;
    this.#once = new CreateOnce(options);
  }

  async create(principal: Principal, body: CreateSandboxBody, options: CreateOptions = {}): Promise<SandboxResource> {
    requireAccess(principal, "sandboxes", { readOnly: false });
    if (principal.kind !== "key") throw new RangeError("a sandbox token passed an access check for keys");
    const { access, providers, defaults, policies } = this.#options;
    const network = policies.complete(principal.keyId, body.network);
    const secrets = await this.#options.secrets.uses(principal.tenant, body.secrets ?? []);
    const wanted = newSandbox(body, { defaults, providers: providers.byName, network, secrets });
    this.#options.volumes.requireOwn(principal.tenant, wanted);
    const { idempotencyKey: key } = options;
    if (key === undefined) return access.resource(principal, await this.#create(principal, wanted, options));
    const fingerprint = createHash("sha256").update(JSON.stringify(body)).digest("hex");
    const request = { tenant: principal.tenant, key, fingerprint };
    const create = (recorded: (id: SandboxId) => void) => this.#create(principal, wanted, options, recorded);
    return access.resource(principal, await this.#once.create(request, create, options.signal));
  }

  get(principal: Principal, id: string): SandboxResource {
    const { access } = this.#options;
    return access.resource(principal, access.find(principal, id, { readOnly: true }));
  }

  async health(principal: Principal, id: string): Promise<SandboxHealth> {
    const { access } = this.#options;
    const live = access.running(principal, id, { readOnly: true });
    const healthy = (await live?.isHealthy()) ?? false;
    return { healthy, state: access.find(principal, id, { readOnly: true }).state };
  }

  list(principal: Principal, query: ListSandboxesQuery): SandboxPage {
    requireAccess(principal, "read", { readOnly: true });
    const { registry, access } = this.#options;
    const { items, nextCursor } = registry.list(sandboxFilter(principal, query));
    return { items: items.map((record) => access.resource(principal, record)), nextCursor };
  }

  async update(principal: Principal, id: string, body: UpdateSandboxBody): Promise<SandboxResource> {
    const { registry, access, providers, names, clock } = this.#options;
    const record = access.find(principal, id, { readOnly: false });
    if (record.endedAt !== null) throw ended(record);
    if (registry.isBeingDestroyed(record.id)) throw beingDestroyed(record);
    const provider = providers.byName.get(record.provider);
    const { checkpoint } = provider?.capabilities ?? { checkpoint: "none" };
    if (body.onExpiry === "pause" && checkpoint === "none") throw cannotPause(record.provider);
    const { ttlMs } = body;
    const expiry = ttlMs === undefined ? {} : { ttlMs, expiresAt: expiresAt(clock.now(), ttlMs) };
    if (body.secrets !== undefined && principal.kind !== "key") throw secretsNeedKey();
    if (body.secrets?.length && provider !== undefined) requireRedirected("secrets", provider, record);
    const secrets = body.secrets && {
      secrets: await this.#options.secrets.uses(record.tenant, body.secrets, record.secrets),
    };
    const policy = "checkpointPolicy" in body ? { checkpointPolicy: checkpointPolicy(body.checkpointPolicy) } : {};
    // Serialized, because a running checkpoint stores the record it started with.
    const changed = await registry.serialize(record.id, async () => {
      const isRenamed = body.name !== undefined && body.name !== record.name;
      const renamed = { ...record, name: body.name ?? null };
      if (isRenamed) await names.take(renamed);
      // Another sandbox of this node may have taken it meanwhile.
      if (isRenamed) names.requireFree(renamed);
      const after = registry.change(record.id, { ...withoutUndefined(body), ...expiry, ...policy, ...secrets });
      await saveRecord(this.#options.ownership, after);
      if (isRenamed) await names.release(record);
      return after;
    });
    if (secrets !== undefined) await registry.running(record.id)?.prepare();
    registry.emit("sandbox.updated", record);
    return access.resource(principal, changed);
  }

  async remove(principal: Principal, id: string, { volumes: choice }: DeleteSandboxQuery = {}): Promise<void> {
    const { access, registry, volumes } = this.#options;
    const record = access.find(principal, id, { readOnly: false });
    if (record.state === "destroyed") throw noSuchSandbox(id);
    const keepsVolumes = choice === "keep";
    if (keepsVolumes) volumes.requireKeepable(record);
    // The running destruction may already have removed the volumes.
    if (keepsVolumes && registry.isBeingDestroyed(record.id)) throw beingDestroyed(record);
    await this.destroy(record, { keepsVolumes });
  }

  /** Concurrent calls wait for the same destruction. */
  destroy(record: SandboxRecord, details: DestroyDetails): Promise<void> {
    return this.#options.registry.destroyOnce(record.id, () => this.#destroy(record, details));
  }

  /** Resolves when no creation and no destruction is running. */
  async settled(): Promise<void> {
    while (this.#boots.size > 0) await Promise.allSettled(this.#boots.values());
    await this.#options.registry.destructionsSettled();
  }

  /** Calls `recorded` in the transaction that adds the record. */
  async #create(
    owner: KeyHolder,
    wanted: NewSandbox,
    options: CreateOptions,
    recorded?: (id: SandboxId) => void,
  ): Promise<SandboxRecord> {
    const { registry, capacity, names, pool, providers, clock, observeCreate } = this.#options;
    this.#options.failedCreates.check(owner.keyId);
    const startedAtMs = clock.monotonicMs();
    names.requireFree({ tenant: owner.tenant, name: wanted.name });
    const signal = options.signal ?? new AbortController().signal;
    using reservation = capacity.reserve(owner, wanted, 1);
    using shared = await capacity.reserveShared(owner, wanted);
    const warm = await pool.claim(instanceKey({ ...wanted, tenant: owner.tenant }), signal);
    const id = warm?.id ?? createSandboxId();
    const record = this.#newRecord(id, owner, wanted, warm === undefined ? "creating" : "ready");
    try {
      signal.throwIfAborted();
      await names.take(record);
      await shared?.bind(id);
      this.#options.transaction(() => {
        names.requireFree(record);
        registry.add(record);
        recorded?.(id);
      });
    } catch (thrown) {
      // Without a record nothing else would destroy the claimed instance.
      if (warm !== undefined) await providers.destroy(record.provider, warm.id);
      await names.release(record);
      throw thrown;
    }
    // From now on the record counts instead of the reservation.
    reservation[Symbol.dispose]();
    registry.emit("sandbox.created", record);
    options.onId?.(id, this.#options.tokenOf(id));
    const owned = this.#own(record);
    // Awaited below, after the boot.
    owned.catch(() => {});
    try {
      const ready = warm === undefined ? await this.#boot(record, signal) : this.#ready(warm, record);
      await owned;
      return ready;
    } catch (thrown) {
      const refusal = await owned.then(
        () => undefined,
        (refused) => SandboxError.from(refused),
      );
      // Without ownership the sandbox must not run.
      if (refusal !== undefined) await this.#undo(id, refusal);
      else await this.#forgetSaved(id);
      await names.release(record);
      this.#countFailure(record);
      throw thrown;
    } finally {
      observeCreate?.(record.provider, (clock.monotonicMs() - startedAtMs) / 1000, warm !== undefined);
    }
  }

  async #undo(id: SandboxId, error: SandboxError): Promise<void> {
    const { registry, providers } = this.#options;
    registry.detach(id);
    const record = registry.record(id);
    if (record === undefined) return;
    await providers.destroy(record.provider, id);
    if (record.endedAt === null) registry.failCreation(record, error);
  }

  #countFailure({ tenant, keyId }: SandboxRecord): void {
    const { registry, failedCreates, onError } = this.#options;
    failedCreates.spend(keyId);
    for (const id of registry.failedCreations(tenant, { except: KEPT_FAILED_CREATIONS })) {
      const record = registry.record(id);
      // Also removes what its provider may have left.
      if (record !== undefined) this.destroy(record, {}).catch((thrown) => onError(SandboxError.from(thrown), id));
    }
  }

  async #own(record: SandboxRecord): Promise<void> {
    const { ownership, providers, registry } = this.#options;
    const requirements = () => providers.checkpointRequirements(record, { instance: record.id });
    const epoch = await ownership.begin({ ...record, state: "ready" }, requirements);
    if (epoch !== null) registry.change(record.id, { epoch });
  }

  #boot(record: SandboxRecord, signal: AbortSignal): Promise<SandboxRecord> {
    const counted = this.#options.capacity.countBoot();
    const boot = this.#bootNow(record, signal).finally(() => {
      counted[Symbol.dispose]();
      this.#boots.delete(record.id);
    });
    this.#boots.set(record.id, boot);
    return boot;
  }

  async #bootNow(record: SandboxRecord, signal: AbortSignal): Promise<SandboxRecord> {
    const { pool, providers, registry } = this.#options;
    let sandbox: Sandbox | undefined;
    try {
      const key = instanceKey(record);
      await providers.fetchImage(key, signal);
      sandbox = await pool.boot(() => providers.boot(key, { id: record.id, signal }), signal);
      return this.#ready(sandbox, registry.change(record.id, { state: "ready" }));
    } catch (thrown) {
      if (sandbox !== undefined) {
        // The instance runs, but a full disk prevented its record: the caller does not learn of it.
        registry.detach(record.id);
        await providers.destroy(record.provider, record.id);
      }
      registry.failCreation(record, SandboxError.from(thrown));
      throw thrown;
    }
  }

  #ready(sandbox: Sandbox, record: SandboxRecord): SandboxRecord {
    const { registry } = this.#options;
    registry.attach(sandbox, record);
    registry.emit("sandbox.ready", record);
    return record;
  }

  async #destroy(record: SandboxRecord, { expired, keepsVolumes = false }: DestroyDetails): Promise<void> {
    const { registry, providers, clock, capacity, volumes, names } = this.#options;
    await this.#boots.get(record.id)?.catch(() => {});
    registry.detach(record.id);
    try {
      volumes.decide(record, { keeps: keepsVolumes });
      // By id, so that a caller can retry a failed destruction.
      await providers.remove(record.provider, record.id, { keepsVolumes });
    } catch (thrown) {
      volumes.decide(record, { keeps: false });
      registry.fail(record, SandboxError.from(thrown));
      throw thrown;
    }
    await this.#forgetSaved(record.id);
    await names.release(registry.record(record.id) ?? record);
    capacity.ended(record);
    registry.change(record.id, { state: "destroyed", endedAt: record.endedAt ?? clock.now(), env: {} });
    if (expired !== undefined) registry.emit("sandbox.expired", record, { reason: expired });
    registry.emit("sandbox.destroyed", record);
  }

  /** Deletes all checkpoints and the state of a destroyed sandbox. */
  async #forgetSaved(id: SandboxId): Promise<void> {
    const { checkpointStore, ownership } = this.#options;
    checkpointStore.forget(id);
    // If this node does not own the sandbox, there is nothing to delete, or it belongs to another node.
    if (!ownership.has(id)) return;
    await checkpointStore.removeAll(id);
    await ownership.remove(id);
  }

  #newRecord(id: SandboxId, owner: KeyHolder, wanted: NewSandbox, state: SandboxRecord["state"]): SandboxRecord {
    const { tenant, keyId } = owner;
    const createdAt = this.#options.clock.now();
    const lifetime = { expiresAt: expiresAt(createdAt, wanted.ttlMs), endedAt: null, failure: null };
    const checkpoints = { checkpointCount: 0, checkpointBytes: 0 };
    const history = { rolledBackTo: null, rollbacks: 0, epoch: null, stoppedAt: null, ...checkpoints };
    const previews = { publicPorts: [], linkEpoch: 0 };
    return { ...wanted, id, tenant, keyId, state, createdAt, ...lifetime, ...history, ...previews };
  }
}

function withoutUndefined({ secrets: _, ...body }: UpdateSandboxBody): SandboxChange {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

function expiresAt(from: Date, ttlMs: number | null): Date | null {
  return ttlMs === null ? null : new Date(from.getTime() + ttlMs);
}
