import type { CheckpointRequirements, Clock, PreparedSandbox } from "@sandpiper/core";
import {
  type CheckpointResource,
  type CreateSandboxBody,
  createSandboxId,
  type ForkBody,
  isNoNetwork,
  type SandboxResource,
} from "@sandpiper/protocol";
import { mayAccess, requireAccess } from "../auth/access.ts";
import { actorOf, type Principal } from "../auth/principal.ts";
import type { RateLimit } from "../auth/rate-limit.ts";
import type { QuotaReservation } from "../cluster/account-quota.ts";
import type { Ownership } from "../ownership/ownership.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { Capacity } from "../sandboxes/capacity.ts";
import { instanceKey } from "../sandboxes/instance-key.ts";
import type { NetworkPolicies } from "../sandboxes/network-policies.ts";
import type { NodeVolumes } from "../sandboxes/node-volumes.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import type { SandboxNames } from "../sandboxes/sandbox-names.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import type { SandboxService } from "../sandboxes/sandbox-service.ts";
import type { CheckpointStore } from "../store/checkpoint-store.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { findCheckpoint } from "./find-checkpoint.ts";
import { forkOf, withoutHostPorts } from "./fork-record.ts";
import type { FreeInstance, PreparedInstances } from "./prepared-instances.ts";
import { requireRestorable } from "./requirements.ts";
import type { SaveRestore } from "./save-restore.ts";

export interface ForksOptions {
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly capacity: Capacity;
  readonly sandboxes: SandboxService;
  readonly checkpoints: Checkpoints;
  readonly checkpointStore: CheckpointStore;
  readonly saveRestore: SaveRestore;
  readonly ownership: Ownership;
  readonly providers: Providers;
  readonly prepared: PreparedInstances;
  readonly volumes: Pick<NodeVolumes, "requireOwn">;
  readonly names: SandboxNames;
  readonly policies: Pick<NetworkPolicies, "requireAllowed">;
  /** Counts copies that fail, by key, together with creations that fail. */
  readonly failedCreates: RateLimit;
  readonly clock: Clock;
}

interface ForkPlan {
  readonly forks: readonly SandboxRecord[];
  /** One per fork. */
  readonly instances: readonly FreeInstance[];
  /** One per fork where a shared quota applies. */
  readonly reservations: readonly QuotaReservation[];
  /** The checkpoint to fork from; undefined to fork the current state of the sandbox. */
  readonly checkpoint: string | undefined;
}

/** Creates sandboxes as copies of a running sandbox or of a checkpoint. */
export class Forks {
  readonly #options: ForksOptions;

  constructor(options: ForksOptions) {
    this.#options = options;
  }

  /** Creates all forks, or none. */
  async fork(principal: Principal, id: string, body: ForkBody): Promise<readonly SandboxResource[]> {
    const { registry, access, capacity, checkpoints, clock, prepared, volumes } = this.#options;
    const record = checkpoints.find(principal, id, { readOnly: false });
    volumes.requireOwn(principal.tenant, record);
    this.#requireNetwork(principal, record);
    const count = body.count ?? 1;
    this.#options.failedCreates.check(actorOf(principal));
    this.#options.names.requireFree({ tenant: principal.tenant, name: body.name ?? null });
    using _ = capacity.reserve(principal, record, count);
    using undo = new DisposableStack();
    const reservations: QuotaReservation[] = [];
    for (let k = 0; k < count; k++) {
      const reservation = await capacity.reserveShared(principal, record);
      if (reservation !== undefined) reservations.push(undo.use(reservation));
    }
    // Forks share caches with the sandboxes of the caller's tenant, not of the original's.
    const container = withoutHostPorts(record.container);
    const required = await this.#requirements(record, body.checkpoint);
    const key = instanceKey({ ...record, container, tenant: principal.tenant }, required);
    const instances = Array.from({ length: count }, () => prepared.take(key));
    const forks = instances.map(({ id }) => forkOf({ ...record, id }, principal, body, clock.now()));
    const created = await this.#countFailure(principal, () =>
      registry.serialize(record.id, () =>
        this.#fork(record, { forks, instances, reservations, checkpoint: body.checkpoint }),
      ),
    );
    prepared.refill(key, count);
    for (const fork of created) registry.emit("sandbox.forked", fork, { from: record.id });
    return created.map((fork) => access.resource(principal, fork));
  }

  /** Creates a sandbox from a checkpoint of any sandbox that the caller can see, taken on any node. */
  async createFrom(principal: Principal, body: CreateSandboxBody, checkpointId: string): Promise<SandboxResource> {
    requireAccess(principal, "sandboxes", { readOnly: false });
    const { access, capacity, clock, checkpointStore, ownership, saveRestore } = this.#options;
    this.#options.failedCreates.check(actorOf(principal));
    const source = await checkpointStore.sandboxOf(checkpointId);
    const saved = source === undefined ? undefined : await ownership.peek(source);
    const isVisible = saved && mayAccess(principal, "sandbox", { readOnly: true, sandbox: saved.record });
    const checkpoint = findCheckpoint(isVisible ? saved : undefined, checkpointId);
    const record = saved?.record as SandboxRecord;
    this.#options.volumes.requireOwn(principal.tenant, record);
    this.#requireNetwork(principal, forkOf(record, principal, body, clock.now()));
    this.#options.names.requireFree({ tenant: principal.tenant, name: body.name ?? null });
    using _ = capacity.reserve(principal, record, 1);
    const { requirements: required } = checkpoint;
    const here = await saveRestore.requirements(record, { saved: required });
    requireRestorable(`checkpoint ${checkpointId}`, required, here);
    const fork = forkOf({ ...record, id: createSandboxId() }, principal, body, clock.now());
    using reservation = await capacity.reserveShared(principal, record);
    await reservation?.bind(fork.id);
    const created = await this.#countFailure(principal, () => this.#copy(record, checkpoint, fork));
    return access.resource(principal, created);
  }

  /** The copy must not give a key more network than it may ask for. */
  #requireNetwork({ keyId }: Principal, { network }: Pick<SandboxRecord, "network">): void {
    if (network !== null && !isNoNetwork(network)) this.#options.policies.requireAllowed(keyId, network);
  }

  async #countFailure<T>(principal: Principal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      this.#options.failedCreates.spend(actorOf(principal));
      throw thrown;
    }
  }

  async #copy(record: SandboxRecord, checkpoint: CheckpointResource, fork: SandboxRecord): Promise<SandboxRecord> {
    const { checkpointStore, providers } = this.#options;
    await using scratch = await checkpointStore.scratch();
    const instance = await providers.prepare(instanceKey(fork, checkpoint.requirements), { id: fork.id });
    try {
      await checkpointStore.load(record, checkpoint.id, scratch.path);
    } catch (thrown) {
      await instance.destroy();
      throw thrown;
    }
    return await this.#start(fork, instance, scratch.path);
  }

  /** Instances are prepared while the original is being saved. */
  async #fork(record: SandboxRecord, plan: ForkPlan): Promise<readonly SandboxRecord[]> {
    const { registry, sandboxes, checkpointStore } = this.#options;
    const { forks, instances, reservations } = plan;
    await using scratch = await checkpointStore.scratch();
    const prepared = instances.map(({ instance }) => instance);
    const settled = Promise.allSettled(prepared);
    try {
      await Promise.all(reservations.map((each, k) => each.bind((forks[k] as SandboxRecord).id)));
      await this.#copyTo(scratch.path, record, plan.checkpoint);
      await Promise.all(prepared);
    } catch (thrown) {
      for (const outcome of await settled) if (outcome.status === "fulfilled") await outcome.value.destroy();
      throw thrown;
    }
    const outcomes = await Promise.allSettled(
      forks.map(async (fork, k) => this.#start(fork, (await prepared[k]) as PreparedSandbox, scratch.path)),
    );
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed === undefined)
      return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<SandboxRecord>).value);
    for (const fork of forks) {
      const known = registry.record(fork.id);
      if (known?.endedAt === null) await sandboxes.destroy(known, {});
    }
    throw failed.reason;
  }

  /** What an instance must match to become a fork. */
  async #requirements(record: SandboxRecord, wanted: string | undefined): Promise<CheckpointRequirements> {
    const { registry, ownership, saveRestore } = this.#options;
    if (wanted === undefined && registry.running(record.id) !== undefined) {
      return await saveRestore.requirements(record, { instance: record.id });
    }
    return findCheckpoint(await ownership.peek(record.id), wanted).requirements;
  }

  async #copyTo(directory: string, record: SandboxRecord, wanted: string | undefined): Promise<void> {
    const { registry, ownership, saveRestore, checkpointStore } = this.#options;
    if (wanted === undefined && registry.running(record.id) !== undefined) {
      await registry.instance(record.id).sandbox.checkpoint(directory, { keepsRunning: true });
      return;
    }
    const checkpoint = findCheckpoint((await ownership.state(record.id)).content, wanted);
    const here = await saveRestore.requirements(record, { saved: checkpoint.requirements });
    requireRestorable(`checkpoint ${checkpoint.id}`, checkpoint.requirements, here);
    await checkpointStore.load(record, checkpoint.id, directory);
  }

  async #start(fork: SandboxRecord, instance: PreparedSandbox, directory: string): Promise<SandboxRecord> {
    const { registry, sandboxes, names } = this.#options;
    try {
      await names.take(fork);
      names.requireFree(fork);
      registry.add(fork);
    } catch (thrown) {
      await instance.destroy();
      await names.release(fork);
      throw thrown;
    }
    try {
      return await registry.serialize(fork.id, () => this.#restore(fork, instance, directory));
    } catch (thrown) {
      await sandboxes.destroy(fork, {});
      throw thrown;
    }
  }

  async #restore(fork: SandboxRecord, instance: PreparedSandbox, directory: string): Promise<SandboxRecord> {
    const { registry, ownership, saveRestore } = this.#options;
    // Both must settle before a failure is undone: each leaves something to clean up.
    const [restored, owned] = await Promise.allSettled([
      instance.restore(directory, { createdAt: fork.createdAt }),
      ownership.begin({ ...fork, state: "ready" }, () => saveRestore.requirements(fork, { instance: fork.id })),
    ]);
    if (restored.status === "rejected") throw restored.reason;
    if (owned.status === "rejected") throw owned.reason;
    const ready = registry.change(fork.id, { state: "ready", epoch: owned.value });
    await registry.attachWithProcesses(restored.value, ready);
    return ready;
  }
}
