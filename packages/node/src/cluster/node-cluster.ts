import { type Clock, FencedStates, Leases, SandboxError } from "@sandpiper/core";
import { openCluster } from "./open-cluster.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { NodeDatabase } from "../records/database.ts";
import { SqliteKeyRecords } from "../records/sqlite-key-records.ts";
import { openStore } from "../store/open-store.ts";

/** How long an owner that is asked for a sandbox may take to save it. */
const CHECKPOINT_BUDGET_MS = 30_000;

export interface NodeClusterOptions {
  readonly database: NodeDatabase;
  readonly version: string;
  readonly clock: Clock;
  readonly describe: () => { readonly isDraining: boolean; readonly sandboxes: number };
  readonly onError: (error: SandboxError) => void;
}

export type NodeCluster = Awaited<ReturnType<typeof openNodeCluster>>;

/** The store that nodes share, and what this one is among them. */
export async function openNodeCluster(storeUrl: string, config: NodeConfig, options: NodeClusterOptions) {
  const { database, clock, onError } = options;
  const store = openStore(storeUrl);
  const onFailure = (thrown: unknown) => onError(SandboxError.from(thrown));
  let leases: Leases | undefined;
  const cluster = await openCluster({
    ...options,
    config,
    store,
    ownKeys: new SqliteKeyRecords(database).list(),
    readLock: async (id) => leases?.read(id),
  });
  const timing = {
    durationMs: config.leaseMs,
    maxSkewMs: config.maxSkewMs,
    checkpointBudgetMs: CHECKPOINT_BUDGET_MS,
  };
  leases = new Leases({ ...timing, store, node: cluster.node, clock, nudge: cluster.nudge, onError: onFailure });
  const states = new FencedStates({ store, clock, leases, onError: onFailure });
  return { ...cluster, store, leases, states };
}
