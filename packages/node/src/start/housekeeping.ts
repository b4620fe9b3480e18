import { type Clock, SandboxError } from "@sandpiper/core";
import type { ReleaseKeeper } from "../checkpoints/release-keeper.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { repeat } from "../cluster/repeat.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { expireAtRest } from "../handoff/expire-at-rest.ts";
import type { SavedRecords } from "../handoff/saved-records.ts";
import { forgetEnded } from "../reconcile/forget-ended.ts";
import type { CheckpointStore } from "../store/checkpoint-store.ts";
import type { Domain } from "./domain.ts";

/** How often the records of sandboxes that ended long ago are deleted. */
const PRUNE_INTERVAL_MS = 3_600_000;

/** How often expired sandboxes and checkpoints are deleted, and then unreferenced chunks. */
const SWEEP_INTERVAL_MS = 60_000;

/** How soon a sandbox that burns CPU time yields to the others; idle ones cost one read of a file. */
const BALANCE_INTERVAL_MS = 250;

export interface HousekeepingOptions {
  readonly config: NodeConfig;
  readonly domain: Domain;
  readonly checkpointStore: CheckpointStore;
  readonly releases: Pick<ReleaseKeeper, "prune" | "refresh">;
  /** Undefined on a standalone node. */
  readonly cluster?: { readonly saved: SavedRecords; readonly leases: Cluster["leases"] } | undefined;
  /** Undefined on a host without cgroups. */
  readonly cpuBalance?: { adjust(): Promise<void> } | undefined;
  readonly onError: (error: SandboxError) => void;
}

/** Starts the node's periodic work. Disposing it stops that and waits for what is running. */
export function startHousekeeping(options: HousekeepingOptions): AsyncDisposable {
  const { config, domain, checkpointStore, releases, cluster, cpuBalance, onError } = options;
  const { clock, checkpoints } = domain;
  const { stopGraceMs: graceMs, keepRecordsMs: keepMs } = config;
  const report = (thrown: unknown) => onError(SandboxError.from(thrown));
  const jobs = new AsyncDisposableStack();
  const forget = async () => {
    await forgetEnded({ ...domain, keepMs });
    await domain.flows.prune(new Date(clock.now().getTime() - keepMs));
  };
  jobs.defer(startJob({ clock, intervalMs: PRUNE_INTERVAL_MS, graceMs }, () => forget().catch(report)));
  const prune = async () => void (await releases.prune());
  jobs.defer(startJob({ clock, intervalMs: PRUNE_INTERVAL_MS, graceMs }, () => prune().catch(report)));
  const sweep = async () => {
    await expireAtRest({ ...domain, cluster });
    await checkpoints.expire();
    await checkpointStore.collectGarbage();
  };
  jobs.defer(startJob({ clock, intervalMs: SWEEP_INTERVAL_MS, graceMs }, () => sweep().catch(report)));
  if (cpuBalance !== undefined) {
    const intervalMs = BALANCE_INTERVAL_MS;
    jobs.defer(startJob({ clock, intervalMs, graceMs }, () => cpuBalance.adjust().catch(report)));
  }
  return jobs;
}

interface JobOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly graceMs: number;
}

/** Runs `work` now and at each interval. Returns a function that stops it: nothing is touched after that resolves. */
function startJob({ clock, intervalMs, graceMs }: JobOptions, work: () => Promise<void>): () => Promise<void> {
  let working = work();
  // A first run that takes longer than the interval delays the second.
  const stop = repeat(clock, intervalMs, () => (working = working.then(work)));
  return async () => {
    stop();
    await within(clock, graceMs, working);
  };
}

/** Waits for `work`, but no longer than `limitMs`. */
export async function within(clock: Clock, limitMs: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const stop = clock.schedule(limitMs, late.resolve);
  await Promise.race([work, late.promise]);
  stop();
}
