import { type Clock, type InstanceRecord, type Provider, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { EventLog } from "../events/event-log.ts";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import type { LiveSandboxes } from "./live-sandboxes.ts";
import type { Providers } from "./providers.ts";

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
}

/** What a start found of the time before it. */
export interface NodeReconciliation {
  /** Run on, with their processes and what they have written. */
  readonly adopted: readonly SandboxId[];
  /** Should have been running and were not. */
  readonly lost: readonly SandboxId[];
  /** Should have been running, and go on from their newest checkpoint when they are used. */
  readonly setBack: readonly SandboxId[];
  /** Ran for nobody, and were removed. */
  readonly removed: readonly SandboxId[];
  readonly failed: readonly { readonly id: SandboxId; readonly error: SandboxError }[];
}

/** Enough to keep the host busy, few enough that hundreds do not open their channels at once. */
const AT_ONCE = 32;

/** Takes over what an earlier node left running, says what is lost, and removes what belongs to nobody. */
export async function reconcileNode(options: ReconcileNodeOptions): Promise<NodeReconciliation> {
  const { providers, records } = options;
  const result = {
    adopted: [] as SandboxId[],
    lost: [] as SandboxId[],
    setBack: [] as SandboxId[],
    removed: [] as SandboxId[],
    failed: [] as { id: SandboxId; error: SandboxError }[],
  };
  // Those that are saved and do not run are where they should be.
  const running = records.live().filter(({ state }) => state !== "paused" && state !== "stopped");
  const expected = new Map(running.map((record) => [record.id, record]));
  for (const provider of providers.byName.values()) {
    const found = (await provider.list()).filter(({ isOrphan }) => isOrphan);
    await eachOf(found, async (instance) => {
      const record = expected.get(instance.id);
      expected.delete(instance.id);
      try {
        if (
          record !== undefined &&
          record.state !== "creating" &&
          record.state !== "restoring" &&
          instance.isRunning &&
          provider.capabilities.supportsAdopt
        ) {
          await adopt(options, provider, instance, record);
          result.adopted.push(instance.id);
          return;
        }
        await provider.remove(instance.id);
        if (record === undefined) result.removed.push(instance.id);
        else await end(options, result, record, whyLost(record, instance, provider));
      } catch (thrown) {
        const error = SandboxError.from(thrown);
        result.failed.push({ id: instance.id, error });
        if (record === undefined) return;
        // What its owner is told to be gone must not go on running.
        options.live.remove(instance.id);
        await provider.remove(instance.id).catch((left) => {
          result.failed.push({ id: instance.id, error: SandboxError.from(left) });
        });
        await end(options, result, record, error.message);
      }
    });
  }
  for (const record of expected.values()) await end(options, result, record, "nothing was left of it");
  options.handoffs?.open();
  return result;
}

async function adopt(
  { providers, live, records }: ReconcileNodeOptions,
  provider: Provider,
  instance: InstanceRecord,
  record: SandboxRecord,
): Promise<void> {
  const sandbox = await providers.manager(provider.name).adopt(instance);
  const ready = record.state === "ready" ? record : records.change(record.id, { state: "ready" });
  await live.followProcesses(live.add(sandbox, ready));
}

function whyLost(record: SandboxRecord, instance: InstanceRecord, provider: Provider): string {
  if (record.state === "creating" || record.state === "restoring") return "the node ended before it was ready";
  if (!instance.isRunning) return "it ended while no node watched it";
  return `provider ${provider.name} cannot take over instances`;
}

/** What has a checkpoint goes on from there when it is used again; the rest is lost. */
async function end(
  options: ReconcileNodeOptions,
  result: { readonly lost: SandboxId[]; readonly setBack: SandboxId[] },
  record: SandboxRecord,
  why: string,
): Promise<void> {
  if (await options.canRestore(record)) {
    options.records.change(record.id, { state: "stopped" });
    result.setBack.push(record.id);
  } else result.lost.push(lose(options, record, why));
}

function lose({ records, events, clock }: ReconcileNodeOptions, record: SandboxRecord, why: string): SandboxId {
  const failure = {
    code: "unavailable",
    reason: "instance_lost",
    message: `the sandbox did not survive a restart: ${why}`,
  };
  records.change(record.id, { state: "failed", failure, endedAt: clock.now() });
  events.emit({ kind: "sandbox.failed", tenant: record.tenant, sandboxId: record.id, details: failure });
  return record.id;
}

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
