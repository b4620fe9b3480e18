import { join } from "node:path";
import type { Clock, Provider } from "@sandpiper/core";
import manifest from "../package.json" with { type: "json" };
import type { CheckpointVault } from "./checkpoints/checkpoint-vault.ts";
import type { NodeCheckpoints } from "./checkpoints/node-checkpoints.ts";
import { LoneNodes } from "./cluster/lone-nodes.ts";
import { openNodeId } from "./cluster/node-id.ts";
import { composeParts } from "./compose-parts.ts";
import { requireSafeBind } from "./config/bind-check.ts";
import type { NodeConfig } from "./config/node-config.ts";
import type { Logger } from "./daemon/logger.ts";
import { serve } from "./daemon/serve.ts";
import { createHttpApp } from "./http/app.ts";
import type { SandboxRecord } from "./records/sandbox-record.ts";
import { SqliteAuditLog } from "./records/sqlite-audit-log.ts";
import { SqliteWebhookRecords } from "./records/sqlite-webhook-records.ts";
import { type NodeReconciliation, reconcileNode } from "./service/reconcile-node.ts";
import { type AttachedSockets, attachSockets } from "./socket/attach-sockets.ts";
import { NodeMetrics, type SandboxCount } from "./telemetry/node-metrics.ts";
import { Webhooks } from "./telemetry/webhooks.ts";

export interface StartNodeOptions {
  readonly logger: Logger;
  readonly clock?: Clock | undefined;
  /** Instead of those that this machine has; for tests. */
  readonly providers?: readonly Provider[] | undefined;
}

export interface RunningNode extends AsyncDisposable {
  readonly url: string;
  readonly apiKeyFile: string;
  readonly reconciled: NodeReconciliation;
  /** Stops accepting, lets requests finish for a while, and leaves sandboxes to the next start. */
  stop(): Promise<void>;
}

/** How often sandboxes that ended long ago are forgotten. */
const PRUNE_INTERVAL_MS = 3_600_000;

/** How often checkpoints whose time is over are deleted, and then what belongs to none any more. */
const CHECKPOINT_SWEEP_MS = 60_000;

/** Starts a node: takes over what an earlier one left, then listens. */
export async function startNode(config: NodeConfig, options: StartNodeOptions): Promise<RunningNode> {
  requireSafeBind(config);
  const { logger } = options;
  const metrics = new NodeMetrics();
  const parts = composeParts(config, {
    clock: options.clock,
    providers: options.providers,
    onError: (error, about) => logger.error({ err: error, ...about }, error.message),
    observeExec: (provider, seconds) => metrics.observeExec(provider, seconds),
    observeCheckpoint: (provider, seconds) => metrics.observeCheckpoint(provider, seconds),
    observeCreate: (provider, seconds, isWarm) => metrics.observeCreate(provider, seconds, isWarm),
  });
  const { clock, database, records, events, keys, live, pool, service, checkpoints, locator, vault, authenticator } =
    parts;
  await using undo = new AsyncDisposableStack();
  undo.defer(() => database[Symbol.dispose]());
  undo.defer(() => live.release());
  undo.defer(() => pool.close());
  undo.defer(() => service.settled());
  keys.firstKey(config.home);
  await vault.clear();
  const reconciled = await reconcileNode(parts);
  for (const { id, error } of reconciled.failed) logger.error({ err: error, sandboxId: id }, "could not be taken over");
  const counts = {
    adopted: reconciled.adopted.length,
    lost: reconciled.lost.length,
    setBack: reconciled.setBack.length,
    removed: reconciled.removed.length,
  };
  events.emit({ kind: "node.reconciled", tenant: null, sandboxId: null, details: counts });
  metrics.collectFrom({ sandboxes: () => counted(records.live()), pools: () => pool.list() });

  let isStopping = false;
  const webhooks = undo.use(
    new Webhooks({
      records: new SqliteWebhookRecords(database, { clock }),
      events,
      allowPrivate: config.allowPrivateWebhooks,
      clock,
      countDelivery: (outcome) => metrics.countWebhookDelivery(outcome),
      onFailure: ({ error, ...about }) => logger.warn({ err: error, ...about }, "a webhook did not take an event"),
    }),
  );
  webhooks.start();
  const audit = undo.use(new SqliteAuditLog(database, { clock }));
  const nodes = new LoneNodes({
    id: openNodeId(config.home),
    url: () => serving.url,
    version: manifest.version,
    clock,
    count: () => live.count,
  });
  const app = createHttpApp({
    service,
    checkpoints,
    locator,
    nodes,
    authenticator,
    keys,
    events,
    pools: pool,
    webhooks,
    audit,
    metrics,
    version: manifest.version,
    logger,
    isStopping: () => isStopping,
    bodyLimitBytes: config.bodyLimitBytes,
    corsOrigins: config.corsOrigins,
    clock,
  });
  let sockets: AttachedSockets | undefined;
  const { certFile, keyFile } = config.tls;
  const serving = await serve({
    app,
    host: config.host,
    port: config.port,
    tls: certFile !== null && keyFile !== null ? { certFile, keyFile } : undefined,
    onUpgradeServer: (server) => {
      const { corsOrigins } = config;
      sockets = attachSockets(server, {
        service,
        locator,
        authenticator,
        events,
        audit,
        logger,
        isStopping: () => isStopping,
        corsOrigins,
        clock,
      });
    },
    clock,
  });
  undo.defer(() => serving.close({ graceMs: config.stopGraceMs }));
  undo.defer(() => sockets?.close());
  // Only now: whoever waits for the node comes before what nobody waits for yet.
  for (const wanted of config.pools) pool.set(wanted);
  undo.defer(
    repeat(clock, PRUNE_INTERVAL_MS, () => records.prune(new Date(clock.now().getTime() - config.keepRecordsMs))),
  );
  undo.defer(repeat(clock, CHECKPOINT_SWEEP_MS, () => sweepCheckpoints(checkpoints, vault, logger)));
  events.emit({ kind: "node.started", tenant: null, sandboxId: null, details: { version: manifest.version } });

  const owned = undo.move();
  const stop = async () => {
    if (!isStopping) events.emit({ kind: "node.stopping", tenant: null, sandboxId: null });
    isStopping = true;
    await owned.disposeAsync();
  };
  return {
    url: serving.url,
    apiKeyFile: join(config.home, "api-key"),
    reconciled,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function sweepCheckpoints(checkpoints: NodeCheckpoints, vault: CheckpointVault, logger: Logger): void {
  checkpoints
    .expire()
    .then(() => vault.collectGarbage())
    .catch((thrown) => logger.error({ err: thrown }, "checkpoints could not be cleared away"));
}

function counted(records: readonly SandboxRecord[]): SandboxCount[] {
  const groups = Map.groupBy(records, ({ provider, state }) => `${provider} ${state}`);
  return [...groups.values()].map((group) => {
    const { provider, state } = group[0] as SandboxRecord;
    return { provider, state, count: group.length };
  });
}

/** Does it now and then; gives what stops it. */
function repeat(clock: Clock, intervalMs: number, work: () => void): () => void {
  let stop = () => {};
  const next = () => {
    work();
    stop = clock.schedule(intervalMs, next);
  };
  next();
  return () => stop();
}
