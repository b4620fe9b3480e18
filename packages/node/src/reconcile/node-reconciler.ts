import { type InstanceRecord, type Provider, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Rebuilds } from "../containers/rebuilds.ts";
import type { HandoffSender } from "../handoff/handoff-sender.ts";
import type { Ownership } from "../ownership/ownership.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { type Providers, WARM_LABEL } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { forEachParallel } from "../store/for-each-parallel.ts";
import { canRestore } from "./can-restore.ts";

export interface NodeReconcilerOptions {
  readonly registry: SandboxRegistry;
  readonly providers: Providers;
  readonly ownership: Ownership;
  readonly rebuilds: Pick<Rebuilds, "rebuildNow">;
  /** Opened once the node knows which sandboxes run here. */
  readonly handoffs?: Pick<HandoffSender, "open"> | undefined;
}

/** What a start did with the sandboxes of an earlier process of this node. */
export interface NodeReconciliation {
  /** Still running, with their processes and files. */
  readonly adopted: readonly SandboxId[];
  /** Adopted ones whose image had changed: recreated from the new image, keeping volumes. */
  readonly rebuilt: readonly SandboxId[];
  /** Not running any more, and without a checkpoint. */
  readonly lost: readonly SandboxId[];
  /** Not running any more; their next use restores their newest checkpoint. */
  readonly setBack: readonly SandboxId[];
  /** Instances without a sandbox. */
  readonly removed: readonly SandboxId[];
  readonly failed: readonly { readonly id: SandboxId; readonly error: SandboxError }[];
  /** Providers that did not answer. Their instances are adopted when they do. */
  readonly unreachable: readonly { readonly provider: string; readonly error: SandboxError }[];
}

type Result = { -readonly [Field in keyof NodeReconciliation]: NodeReconciliation[Field][number][] };

interface Ending {
  readonly why: string;
  /** Removes the instance; undefined leaves it alone. */
  readonly provider?: Provider | undefined;
}

/** Keeps the host busy without opening hundreds of channels at once. */
const PARALLEL = 32;

/** Compares the records with the instances that the providers find: adopts, marks as lost, or removes. */
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

  /** The number of providers that have not answered yet. */
  get pending(): number {
    return this.#pending.length;
  }

  /** Reconciles the providers that have not answered before. */
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
      else await this.#take(provider, instances, result);
    }
    this.#pending = pending;
    for (const record of this.#expectedWhere(({ provider }) => !providers.byName.has(provider))) {
      await this.#end(result, record, { why: `this node has no provider ${record.provider} any more` });
    }
    handoffs?.open();
    return result;
  }

  async #take(provider: Provider, instances: readonly InstanceRecord[], result: Result): Promise<void> {
    const orphans = instances.filter(({ isOrphan }) => isOrphan);
    await forEachParallel(orphans, PARALLEL, (instance) => this.#settle(provider, instance, result));
    // Another live program owns these instances.
    const owned = new Set(instances.filter(({ isOrphan }) => !isOrphan).map(({ id }) => id));
    for (const record of this.#expectedWhere((each) => each.provider === provider.name)) {
      const mayTouch = owned.has(record.id) ? undefined : provider;
      await this.#end(result, record, { why: "nothing was left of it", provider: mayTouch });
    }
  }

  async #settle(provider: Provider, instance: InstanceRecord, result: Result): Promise<void> {
    const record = this.#expected.get(instance.id);
    this.#expected.delete(instance.id);
    try {
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

  async #adopt(provider: Provider, instance: InstanceRecord, record: SandboxRecord): Promise<void> {
    const { providers, registry } = this.#options;
    const sandbox = await providers.manager(provider.name).adopt(instance);
    const ready = record.state === "ready" ? record : registry.change(record.id, { state: "ready" });
    await registry.attachWithProcesses(sandbox, ready);
  }

  /** If the rebuild fails, the sandbox keeps running as it is. */
  async #rebuildOutdated({ containers }: Provider, id: SandboxId, result: Result): Promise<void> {
    try {
      if (!(await containers?.isOutdated(id))) return;
      await this.#options.rebuilds.rebuildNow(id);
      result.rebuilt.push(id);
    } catch (thrown) {
      result.failed.push({ id, error: SandboxError.from(thrown) });
    }
  }

  /** Keeps the volumes of a sandbox that had an owner. A warm instance never had one. */
  async #remove(provider: Provider, { id, spec }: InstanceRecord, result: Result): Promise<void> {
    const known = this.#options.registry.record(id);
    const isUnused = known === undefined ? WARM_LABEL in spec.labels : known.state === "destroyed";
    await provider.remove(id, { keepsVolumes: !isUnused });
    result.removed.push(id);
  }

  /** A sandbox with a checkpoint is stopped, and its next use restores it; any other has failed and keeps its volumes. */
  async #end(result: Result, record: SandboxRecord, { why, provider }: Ending): Promise<void> {
    const { ownership, registry } = this.#options;
    this.#expected.delete(record.id);
    if (this.#hasEnded(record)) return;
    const isSaved = await canRestore(ownership, record);
    const removal = provider?.remove(record.id, { keepsVolumes: !isSaved });
    await removal?.catch((left) => result.failed.push({ id: record.id, error: SandboxError.from(left) }));
    if (isSaved) {
      registry.change(record.id, { state: "stopped" });
      result.setBack.push(record.id);
    } else {
      registry.fail(record, {
        code: "unavailable",
        reason: "instance_lost",
        message: `the sandbox did not survive a restart: ${why}`,
      });
      result.lost.push(record.id);
    }
  }

  /** A caller may have destroyed it while its provider did not answer. */
  #hasEnded({ id }: SandboxRecord): boolean {
    const { endedAt = new Date() } = this.#options.registry.record(id) ?? {};
    return endedAt !== null;
  }

  #expectedWhere(fits: (record: SandboxRecord) => boolean): readonly SandboxRecord[] {
    return [...this.#expected.values()].filter(fits);
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
  if (record.state === "creating" || record.state === "restoring") return "the node ended before it was ready";
  if (!instance.isRunning) return "it ended while no node watched it";
  return `provider ${provider.name} cannot take over instances`;
}
