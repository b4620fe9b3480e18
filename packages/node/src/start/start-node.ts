import { join } from "node:path";
import { type Clock, type Provider, SandboxError, systemClock } from "@sandpiper/core";
import type { DrainNodeBody, SandboxId } from "@sandpiper/protocol";
import manifest from "../../package.json" with { type: "json" };
import { ClusterApp } from "../cluster/cluster-app.ts";
import { LoneNodes } from "../cluster/standalone-nodes.ts";
import { openNodeId } from "../cluster/node-id.ts";
import { SandboxesAtRest } from "../handoff/sandboxes-at-rest.ts";
import { SavedRecords } from "../handoff/saved-records.ts";
import { LeaseWhereabouts } from "../cluster/whereabouts.ts";
import { createGuard } from "../embedded/create-provider.ts";
import { composeParts, openHome } from "./domain.ts";
import { requireSafeBind } from "../config/bind-check.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { Logger } from "../daemon/logger.ts";
import { serve } from "../daemon/serve.ts";
import { expireResting } from "../handoff/expire-at-rest.ts";
import { LeaseGuard } from "../ownership/lease-guard.ts";
import { openNodeCluster } from "../cluster/node-cluster.ts";
import { resumeLeases } from "../reconcile/resume-leases.ts";
import { createHttpApp } from "../http/app.ts";
import { LazyEndpoint } from "../mcp/lazy-endpoint.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { SqliteAuditLog } from "../records/sqlite-audit-log.ts";
import { SqliteWebhookRecords } from "../records/sqlite-webhook-records.ts";
import type { NodeDirectory } from "../checkpoints/checkpoint-service.ts";
import { type EngineStatus, probeEngines } from "../sandboxes/engine-status.ts";
import { forgetEnded } from "../reconcile/forget-ended.ts";
import { NodeReconciler, type NodeReconciliation, reconciledCounts } from "../reconcile/node-reconciler.ts";
import { untilReconciled } from "../reconcile/until-reconciled.ts";
import { type AttachedSockets, attachSockets } from "../upgrade/attach-sockets.ts";
import { NodeMetrics, type SandboxCount } from "../telemetry/node-metrics.ts";
import { Webhooks } from "../webhooks/webhooks.ts";

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
  /** Providers that need a program beside the node, and whether it answers. */
  readonly engines: readonly EngineStatus[];
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
  const { clock = systemClock } = options;
  await using undo = new AsyncDisposableStack();
  const database = openHome(config);
  undo.defer(() => database[Symbol.dispose]());
  const onError = (error: SandboxError, about: object = {}) => logger.error({ err: error, ...about }, error.message);
  let isStopping = false;
  let isDraining = false;
  const describe = () => ({ isDraining, sandboxes: parts.live.count });
  const shared = { database, version: manifest.version, clock, describe, onError };
  const cluster = config.store === null ? undefined : undo.use(await openNodeCluster(config.store, config, shared));
  const guard = cluster && undo.use(leaseGuard(config, clock, onError));
  const parts = composeParts(config, {
    clock,
    database,
    cluster,
    providers: options.providers,
    onDeadline: (id, deadlineMs) => guard?.setDeadline(id, deadlineMs),
    onError,
    observeExec: (provider, seconds) => metrics.observeExec(provider, seconds),
    observeCheckpoint: (provider, seconds) => metrics.observeCheckpoint(provider, seconds),
    observeCreate: (provider, seconds, isWarm) => metrics.observeCreate(provider, seconds, isWarm),
  });
  const { records, events, keys, live, pool, service, checkpoints, locator, vault, authenticator } = parts;
  if (options.providers === undefined) {
    for (const provider of parts.providers.byName.values()) undo.defer(() => provider[Symbol.asyncDispose]?.());
  }
  undo.defer(() => live.release());
  undo.defer(() => cluster?.leases.dispose());
  undo.defer(() => pool.close());
  undo.use(parts.spares);
  undo.defer(() => service.settled());
  if (cluster === undefined) keys.firstKey(config.home);
  await vault.clear();
  await guard?.start();
  if (parts.shared !== undefined)
    await resumeLeases({ ...parts, custody: parts.shared, onError: aboutSandbox(onError) });
  const reconciler = new NodeReconciler(parts);
  const tellReconciled = (found: NodeReconciliation) => {
    for (const { id, error } of found.failed) logger.error({ err: error, sandboxId: id }, "could not be taken over");
    events.emit({ kind: "node.reconciled", tenant: null, sandboxId: null, details: reconciledCounts(found) });
  };
  const reconciled = await reconciler.reconcile();
  tellReconciled(reconciled);
  const engines = await probeEngines(parts.providers.byName.values());
  for (const { provider, status } of engines) {
    if (!status.available) logger.warn({ provider, hint: status.hint }, `provider ${provider}: ${status.reason}`);
  }
  metrics.collectFrom({
    sandboxes: () => counted(records.live()),
    pools: () => pool.list(),
    mcpSessions: () => mcp.sessionCount,
  });

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
  const audit = undo.use(new SqliteAuditLog(database, { clock, onError }));
  const mcp = new LazyEndpoint(async () => {
    const { composeMcp } = await import("./mcp.ts");
    const own = { app: entrance, server: serving.server };
    return composeMcp(config, { authenticator, audit, metrics, logger, clock, own });
  });
  const drain = async ({ deadlineMs = config.drainMs }: DrainNodeBody = {}) => {
    // Sessions are this node's alone, and what they made ends with them; it need not be saved.
    await within(clock, config.stopGraceMs, mcp.close());
    isDraining = true;
    events.emit({ kind: "node.draining", tenant: null, sandboxId: null });
    await cluster?.registry.announce();
    await pool.close();
    await parts.handoffs?.drain(AbortSignal.timeout(deadlineMs));
    // Whoever looks now sees an empty node, and not the one that it was at the last sign of life.
    await cluster?.registry.announce().catch((thrown) => onError(SandboxError.from(thrown)));
  };
  const nodes: NodeDirectory =
    cluster === undefined
      ? new LoneNodes({
          id: openNodeId(config.home),
          url: () => serving.url,
          version: manifest.version,
          clock,
          count: () => live.count,
        })
      : { list: () => cluster.registry.list(), drain };
  const app = createHttpApp({
    service,
    checkpoints,
    containers: parts.containers,
    locator,
    nodes,
    authenticator,
    keys: cluster?.keys ?? keys,
    events,
    pools: pool,
    webhooks,
    audit,
    metrics,
    mcp,
    version: manifest.version,
    logger,
    isStopping: () => isStopping,
    isDraining: () => isDraining,
    bodyLimitBytes: config.bodyLimitBytes,
    corsOrigins: config.corsOrigins,
    clock,
  });
  let sockets: AttachedSockets | undefined;
  const { certFile, keyFile } = config.tls;
  const whereabouts =
    cluster &&
    new LeaseWhereabouts({
      nodeId: cluster.node.id,
      leases: cluster.leases,
      isHere: (id) => live.get(id) !== undefined || records.get(id) !== undefined,
    });
  const saved =
    cluster && new SavedRecords({ ...cluster, read: (id) => cluster.states.read(id), onError: aboutSandbox(onError) });
  const entrance =
    cluster === undefined || whereabouts === undefined || saved === undefined
      ? app
      : new ClusterApp({
          app,
          proof: cluster.proof,
          forwarder: cluster.forwarder,
          whereabouts,
          nodes: () => cluster.registry.list(),
          atRest: new SandboxesAtRest({
            saved,
            leases: cluster.leases,
            describe: (principal, record) => service.resource(principal, record, null),
          }),
          authenticator,
          learn: (credential) => cluster.keys.learn(credential),
          onNudge: (id) => {
            cluster.leases.poke(id);
            parts.handoffs?.nudged(id);
          },
          corsOrigins: config.corsOrigins,
        });
  const serving = await serve({
    app: entrance,
    host: config.host,
    port: config.port,
    tls: certFile !== null && keyFile !== null ? { certFile, keyFile } : undefined,
    onUpgradeServer: (server) => {
      const { corsOrigins } = config;
      sockets = attachSockets(server, {
        service,
        locator,
        cluster: cluster && whereabouts && { ...cluster, whereabouts, silenceMs: config.leaseMs },
        authenticator,
        events,
        audit,
        logger,
        isStopping: () => isStopping,
        isDraining: () => isDraining,
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
  const forgetting = { ...parts, keepMs: config.keepRecordsMs };
  undo.defer(
    repeat({ clock, intervalMs: PRUNE_INTERVAL_MS, graceMs: config.stopGraceMs }, async () => {
      await forgetEnded(forgetting).catch((thrown) => onError(SandboxError.from(thrown)));
    }),
  );
  undo.defer(untilReconciled(reconciler, { clock, tell: tellReconciled, onError }));
  const resting = { ...parts, cluster: cluster && saved && { saved, leases: cluster.leases, locator } };
  const sweep = async () => {
    await expireResting(resting);
    await checkpoints.expire();
    await vault.collectGarbage();
  };
  undo.defer(
    repeat({ clock, intervalMs: CHECKPOINT_SWEEP_MS, graceMs: config.stopGraceMs }, async () => {
      await sweep().catch((thrown) => logger.error({ err: thrown }, "what has expired could not be cleared away"));
    }),
  );
  if (cluster !== undefined) {
    await cluster.registry.start();
    undo.defer(() => cluster.registry.stop());
  }
  events.emit({ kind: "node.started", tenant: null, sandboxId: null, details: { version: manifest.version } });

  const owned = undo.move();
  const stop = async () => {
    if (!isStopping) events.emit({ kind: "node.stopping", tenant: null, sandboxId: null });
    // While the node still does what its clients ask.
    await within(clock, config.stopGraceMs, mcp.close());
    // Others take what is here; what cannot be saved in time stays, and is taken up when the node starts again.
    if (!isDraining && cluster !== undefined) await drain().catch((thrown) => onError(SandboxError.from(thrown)));
    isStopping = true;
    await owned.disposeAsync();
  };
  return {
    url: serving.url,
    apiKeyFile: join(config.home, "api-key"),
    reconciled,
    engines,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Waits for it, but not for longer than this. */
async function within(clock: Clock, limitMs: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const stop = clock.schedule(limitMs, late.resolve);
  await Promise.race([work, late.promise]);
  stop();
}

function leaseGuard(config: NodeConfig, clock: Clock, onError: (error: SandboxError) => void): LeaseGuard {
  const { home, leaseMs } = config;
  return new LeaseGuard({ guard: createGuard(home, clock), clock, lookMs: leaseMs / 3, onError });
}

function aboutSandbox(onError: (error: SandboxError, about: object) => void) {
  return (error: SandboxError, id: SandboxId) => onError(error, { sandboxId: id });
}

function counted(records: readonly SandboxRecord[]): SandboxCount[] {
  const groups = Map.groupBy(records, ({ provider, state }) => `${provider} ${state}`);
  return [...groups.values()].map((group) => {
    const { provider, state } = group[0] as SandboxRecord;
    return { provider, state, count: group.length };
  });
}

interface RepeatOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly graceMs: number;
}

/** Does it now and then. Gives what stops it and waits for what is under way: nothing is touched after the node's end. */
function repeat({ clock, intervalMs, graceMs }: RepeatOptions, work: () => Promise<void>): () => Promise<void> {
  let stop = () => {};
  let working = Promise.resolve();
  const next = () => {
    working = work();
    stop = clock.schedule(intervalMs, next);
  };
  next();
  return async () => {
    stop();
    await within(clock, graceMs, working);
  };
}
