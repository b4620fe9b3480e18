import { type InstanceRecord, type Provider, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Rebuilds } from "../containers/rebuilds.ts";
import type { HandoffSender } from "../handoff/handoff-sender.ts";
import type { Ownership } from "../ownership/ownership.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { NodeVolumes } from "../sandboxes/node-volumes.ts";
import { type Providers, WARM_LABEL } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { forEachParallel } from "../store/for-each-parallel.ts";

export interface NodeReconcilerOptions {
  readonly registry: SandboxRegistry;
  readonly providers: Providers;
  readonly ownership: Ownership;
  readonly volumes: Pick<NodeVolumes, "isDecided">;
  readonly rebuilds: Pick<Rebuilds, "rebuildNow">;
  /** Opened once the node knows which sandboxes run here. */
  readonly handoffs?: Pick<HandoffSender, "open"> | undefined;
}

/** What a start did with the sandboxes of the node's previous process. */
export interface NodeReconciliation {
  /** Still running, with their processes and files. */
  readonly adopted: readonly SandboxId[];
  /** Adopted sandboxes whose image had changed: recreated from the new image, keeping volumes. */
  readonly rebuilt: readonly SandboxId[];
  /** No longer running, and without a checkpoint. */
  readonly lost: readonly SandboxId[];
  /** No longer running; their next use restores their newest checkpoint. */
  readonly setBack: readonly SandboxId[];
  /** Instances without a sandbox. */
  readonly removed: readonly SandboxId[];
  readonly failed: readonly { readonly id: SandboxId; readonly error: SandboxError }[];
  /** Providers that did not respond. Their instances are adopted once they do. */
  readonly unreachable: readonly { readonly provider: string; readonly error: SandboxError }[];
}

type Result = { -readonly [Field in keyof NodeReconciliation]: NodeReconciliation[Field][number][] };

interface Ending {
  readonly why: string;
  /** Removes the instance; undefined leaves it alone. */
  readonly provider?: Provider | undefined;
}

/** Enough to keep the host busy, without hundreds of channels at the same time. */
const PARALLEL = 32;

/** Compares the records with the providers' instances, and adopts, marks as lost, or removes each. */
export class NodeReconciler {
  readonly #options: NodeReconcilerOptions;
  /** Sandboxes that should be running and have not been found yet. */
  readonly #expected: Map<SandboxId, SandboxRecord>;
  #pending: readonly Provider[];

  constructor(options: NodeReconcilerOptions) {
    this.#options = options;
    // Paused and stopped sandboxes have no instance to find.
    const running = options.registry.current().filter(({ state }) => state !== "paused" && state !== "stopped");
    this.#expected = new Map(running.map((record) => [record.id, record]));
    this.#pending = [...options.providers.byName.values()];
  }

  /** The number of providers that have not responded yet. */
  get pending(): number {
    return this.#pending.length;
  }

  /** Reconciles the providers that have not responded before. */
  async reconcile(): Promise<NodeReconciliation> {
    const { providers, handoffs } = this.#options;
    const result: Result = {
      adopted: [],
      rebuilt: [],
      lost: [],
      setBack: [],
      removed: [],
      failed: [],
      unreachable: [],
    };
    const pending: Provider[] = [];
    for (const provider of this.#pending) {
      const instances = await provider.list().catch((thrown) => {
        const error = SandboxError.from(thrown);
        if (error.code !== "unavailable") throw error;
        result.unreachable.push({ provider: provider.name, error });
      });
      if (instances === undefined) pending.push(provider);
      else await this.#reconcileProvider(provider, instances, result);
    }
    this.#pending = pending;
    for (const record of this.#expectedWhere(({ provider }) => !providers.byName.has(provider))) {
      await this.#end(result, record, { why: `this node no longer has provider ${record.provider}` });
    }
    handoffs?.open();
    return result;
  }

  async #reconcileProvider(provider: Provider, instances: readonly InstanceRecord[], result: Result): Promise<void> {
    const orphans = instances.filter(({ isOrphan }) => isOrphan);
    await forEachParallel(orphans, PARALLEL, (instance) => this.#settle(provider, instance, result));
    // Another running program owns these instances.
    const owned = new Set(instances.filter(({ isOrphan }) => !isOrphan).map(({ id }) => id));
    for (const record of this.#expectedWhere((each) => each.provider === provider.name)) {
      const remover = owned.has(record.id) ? undefined : provider;
      await this.#end(result, record, { why: "its instance is gone", provider: remover });
    }
  }

  async #settle(provider: Provider, instance: InstanceRecord, result: Result): Promise<void> {
    const record = this.#expected.get(instance.id);
    this.#expected.delete(instance.id);
    try {
      if (this.#isStoppedByOwner(instance.id)) return await this.#keepStopped(provider, instance);
      if (record === undefined || this.#hasEnded(record)) return await this.#remove(provider, instance, result);
      if (!canAdopt(record, instance, provider)) {
        return await this.#end(result, record, { why: whyLost(record, instance, provider), provider });
      }
      await this.#adopt(provider, instance, record);
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      result.failed.push({ id: instance.id, error });
      if (record === undefined) return;
      // A sandbox reported as lost must not keep running.
      this.#options.registry.detach(instance.id);
      return await this.#end(result, record, { why: error.message, provider });
    }
    result.adopted.push(instance.id);
    await this.#rebuildOutdated(provider, instance.id, result);
  }

  #isStoppedByOwner(id: SandboxId): boolean {
    const record = this.#options.registry.record(id);
    return record !== undefined && record.endedAt === null && record.stoppedAt !== null;
  }

  /** The previous process may have died before the container had ended. */
  async #keepStopped({ containers }: Provider, { id, isRunning }: InstanceRecord): Promise<void> {
    if (isRunning) await containers?.stop(id, { timeoutMs: 0 });
  }

  async #adopt(provider: Provider, instance: InstanceRecord, record: SandboxRecord): Promise<void> {
    const { providers, registry } = this.#options;
    const sandbox = await providers.manager(provider.name).adopt(instance);
    const ready = record.state === "ready" ? record : registry.change(record.id, { state: "ready" });
    await registry.attachWithProcesses(sandbox, ready);
  }

  /** If the rebuild fails, the sandbox keeps running on its old image. */
  async #rebuildOutdated({ containers }: Provider, id: SandboxId, result: Result): Promise<void> {
    try {
      if (!(await containers?.isOutdated(id))) return;
      await this.#options.rebuilds.rebuildNow(id);
      result.rebuilt.push(id);
    } catch (thrown) {
      result.failed.push({ id, error: SandboxError.from(thrown) });
    }
  }

  /** Keeps the volumes of a sandbox, but not those of a warm instance, which never held one. */
  async #remove(provider: Provider, { id, spec }: InstanceRecord, result: Result): Promise<void> {
    const known = this.#options.registry.record(id);
    const isUnused = known === undefined ? WARM_LABEL in spec.labels : known.state === "destroyed";
    await provider.remove(id, { keepsVolumes: !isUnused });
    result.removed.push(id);
  }

  /** Marks a sandbox with a checkpoint as stopped, so that its next use restores it. Any other fails and keeps its volumes. */
  async #end(result: Result, record: SandboxRecord, { why, provider }: Ending): Promise<void> {
    const { registry, volumes } = this.#options;
    this.#expected.delete(record.id);
    if (this.#hasEnded(record)) return;
    const isSaved = await this.#canRestore(record);
    // The node may have died while it destroyed the sandbox and kept its volumes.
    const keepsVolumes = !isSaved || volumes.isDecided(record.id);
    const removal = provider?.remove(record.id, { keepsVolumes });
    await removal?.catch((thrown) => result.failed.push({ id: record.id, error: SandboxError.from(thrown) }));
    if (isSaved) {
      registry.change(record.id, { state: "stopped" });
      result.setBack.push(record.id);
    } else {
      registry.fail(record, {
        code: "gone",
        reason: "instance_lost",
        message: `the sandbox did not survive a restart: ${why}`,
      });
      result.lost.push(record.id);
    }
  }

  /**
   * Whether a sandbox without an instance has a checkpoint. If the node died while it restored the sandbox, nothing has
   * changed since the checkpoint, and restoring it again is not a rollback.
   */
  async #canRestore(record: SandboxRecord): Promise<boolean> {
    const { ownership } = this.#options;
    const saved = await ownership.peek(record.id);
    const newest = saved?.checkpoints.at(-1);
    if (saved === undefined || newest === undefined) return false;
    const isRolledBack = record.rolledBackTo !== null && record.rolledBackTo.at > newest.createdAt;
    if (record.state === "restoring" && saved.record.state === "ready" && !isRolledBack) {
      const state = await ownership.state(record.id);
      await state.commit({ ...saved, record: { ...saved.record, state: "stopped" } });
    }
    return true;
  }

  /** A caller may have destroyed it while its provider did not respond. */
  #hasEnded({ id }: SandboxRecord): boolean {
    const { endedAt = new Date() } = this.#options.registry.record(id) ?? {};
    return endedAt !== null;
  }

  #expectedWhere(matches: (record: SandboxRecord) => boolean): readonly SandboxRecord[] {
    return [...this.#expected.values()].filter(matches);
  }
}

export function reconciledCounts({ adopted, rebuilt, lost, setBack, removed }: NodeReconciliation) {
  return {
    adopted: adopted.length,
    rebuilt: rebuilt.length,
    lost: lost.length,
    setBack: setBack.length,
    removed: removed.length,
  };
}

function canAdopt({ state }: SandboxRecord, { isRunning }: InstanceRecord, { capabilities }: Provider): boolean {
  return state !== "creating" && state !== "restoring" && isRunning && capabilities.supportsAdopt;
}

function whyLost(record: SandboxRecord, instance: InstanceRecord, provider: Provider): string {
  if (record.state === "creating" || record.state === "restoring") return "the node ended before the sandbox was ready";
  if (!instance.isRunning) return "its instance ended while the node was down";
  return `provider ${provider.name} cannot adopt instances`;
}
