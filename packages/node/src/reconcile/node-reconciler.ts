import { type Clock, type InstanceRecord, type Provider, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { EventLog } from "../records/event-log.ts";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import type { LiveSandboxes } from "../sandboxes/sandbox-registry.ts";
import { type Providers, WARM_LABEL } from "../sandboxes/providers.ts";

export interface ReconcileNodeOptions {
  readonly providers: Providers;
  readonly records: SandboxRecords;
  readonly events: EventLog;
  readonly live: LiveSandboxes;
  readonly clock: Clock;
  /** Told when it is known what runs here. */
  readonly handoffs?: { open(): void } | undefined;
  /** Whether there is a checkpoint of it. */
  readonly canRestore: (record: SandboxRecord) => Promise<boolean>;
  readonly rebuilds: { rebuildNow(id: SandboxId): Promise<unknown> };
}

/** What a start found of the time before it. */
export interface NodeReconciliation {
  /** Run on, with their processes and what they have written. */
  readonly adopted: readonly SandboxId[];
  /** Of these, whose image means another one by now: they run on that, with their volumes. */
  readonly rebuilt: readonly SandboxId[];
  /** Should have been running and were not. */
  readonly lost: readonly SandboxId[];
  /** Should have been running, and go on from their newest checkpoint when they are used. */
  readonly setBack: readonly SandboxId[];
  /** Ran for nobody, and were removed. */
  readonly removed: readonly SandboxId[];
  readonly failed: readonly { readonly id: SandboxId; readonly error: SandboxError }[];
  /** Could not be asked: what they run is taken over when they answer. */
  readonly unreachable: readonly { readonly provider: string; readonly error: SandboxError }[];
}

type Result = { -readonly [Field in keyof NodeReconciliation]: NodeReconciliation[Field][number][] };

interface Ending {
  readonly why: string;
  /** Removes what is left of it; undefined: nothing is to be removed. */
  readonly provider?: Provider | undefined;
}

/** Enough to keep the host busy, few enough that hundreds do not open their channels at once. */
const AT_ONCE = 32;

/** Takes over what an earlier node left running, says what is lost, and removes what belongs to nobody. */
export class NodeReconciler {
  readonly #options: ReconcileNodeOptions;
  /** Sandboxes of before this start that should be running and have not been found yet. */
  readonly #expected: Map<SandboxId, SandboxRecord>;
  #pending: readonly Provider[];

  constructor(options: ReconcileNodeOptions) {
    this.#options = options;
    // Those that are saved and do not run are where they should be.
    const running = options.records.live().filter(({ state }) => state !== "paused" && state !== "stopped");
    this.#expected = new Map(running.map((record) => [record.id, record]));
    this.#pending = [...options.providers.byName.values()];
  }

  /** How many providers could not be asked yet. */
  get pending(): number {
    return this.#pending.length;
  }

  /** Deals with the providers that have not been dealt with before. */
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
    await eachOf(orphans, (instance) => this.#settle(provider, instance, result));
    // What a living program has is not this node's to touch.
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
      // What its owner is told to be gone must not go on running.
      this.#options.live.remove(instance.id);
      return await this.#end(result, record, { why: error.message, provider });
    }
    result.adopted.push(instance.id);
    await this.#rebuildOutdated(provider, instance.id, result);
  }

  async #adopt(provider: Provider, instance: InstanceRecord, record: SandboxRecord): Promise<void> {
    const { providers, live, records } = this.#options;
    const sandbox = await providers.manager(provider.name).adopt(instance);
    const ready = record.state === "ready" ? record : records.change(record.id, { state: "ready" });
    await live.followProcesses(live.add(sandbox, ready));
  }

  /** It runs on as it is when that cannot be done. */
  async #rebuildOutdated({ containers }: Provider, id: SandboxId, result: Result): Promise<void> {
    try {
      if (!(await containers?.isOutdated(id))) return;
      await this.#options.rebuilds.rebuildNow(id);
      result.rebuilt.push(id);
    } catch (thrown) {
      result.failed.push({ id, error: SandboxError.from(thrown) });
    }
  }

  /** Whoever had something in it may still want its volumes; in one that was made ahead nobody ever had. */
  async #remove(provider: Provider, { id, spec }: InstanceRecord, result: Result): Promise<void> {
    const known = this.#options.records.get(id);
    const isNobodys = known === undefined ? WARM_LABEL in spec.labels : known.state === "destroyed";
    await provider.remove(id, { keepsVolumes: !isNobodys });
    result.removed.push(id);
  }

  /** What has a checkpoint goes on from there when it is used again; the rest is lost, but for its volumes. */
  async #end(result: Result, record: SandboxRecord, { why, provider }: Ending): Promise<void> {
    const { canRestore, records } = this.#options;
    this.#expected.delete(record.id);
    if (this.#hasEnded(record)) return;
    const isSaved = await canRestore(record);
    const removal = provider?.remove(record.id, { keepsVolumes: !isSaved });
    await removal?.catch((left) => result.failed.push({ id: record.id, error: SandboxError.from(left) }));
    if (isSaved) {
      records.change(record.id, { state: "stopped" });
      result.setBack.push(record.id);
    } else {
      this.#lose(record, why);
      result.lost.push(record.id);
    }
  }

  #lose(record: SandboxRecord, why: string): void {
    const { records, events, clock } = this.#options;
    const failure = {
      code: "unavailable",
      reason: "instance_lost",
      message: `the sandbox did not survive a restart: ${why}`,
    };
    records.change(record.id, { state: "failed", failure, endedAt: clock.now() });
    events.emit({ kind: "sandbox.failed", tenant: record.tenant, sandboxId: record.id, details: failure });
  }

  /** While its provider could not be asked, somebody may have destroyed it. */
  #hasEnded({ id }: SandboxRecord): boolean {
    const { endedAt = new Date() } = this.#options.records.get(id) ?? {};
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

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
