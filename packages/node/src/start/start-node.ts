import { join } from "node:path";
import { type Clock, type Provider, SandboxError, systemClock } from "@sandpiper/core";
import type { DrainNodeBody } from "@sandpiper/protocol";
import manifest from "../../package.json" with { type: "json" };
import { ReleaseKeeper } from "../checkpoints/release-keeper.ts";
import { openNodeId } from "../cluster/node-id.ts";
import { type NodeDirectory, StandaloneNodes } from "../cluster/standalone-nodes.ts";
import { requireSafeBind } from "../config/bind-check.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { createCpuBalance, createGuard } from "../embedded/create-provider.ts";
import { SavedRecords } from "../handoff/saved-records.ts";
import { LeaseGuard } from "../ownership/lease-guard.ts";
import { savedSandboxes } from "../ownership/saved-sandboxes.ts";
import { NodeReconciler, type NodeReconciliation, reconciledCounts } from "../reconcile/node-reconciler.ts";
import { resumeLeases } from "../reconcile/resume-leases.ts";
import { untilReconciled } from "../reconcile/until-reconciled.ts";
import { diskFullError } from "../records/disk-full.ts";
import type { EventLog } from "../records/event-log.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { type EngineStatus, probeEngines } from "../sandboxes/engine-status.ts";
import { NodePhase } from "../sandboxes/node-phase.ts";
import { startShipping } from "../ship/start-shipping.ts";
import { SealedStates } from "../store/sealed-states.ts";
import type { Logger } from "../telemetry/logger.ts";
import { NodeMetrics, type SandboxCount } from "../telemetry/node-metrics.ts";
import { Webhooks } from "../webhooks/webhooks.ts";
import { countLimited } from "./count-limited.ts";
import { createDomain, type Domain } from "./domain.ts";
import { type Edges, openEdges } from "./edges.ts";
import { startHousekeeping, within } from "./housekeeping.ts";
import { openStorage, type Storage } from "./storage.ts";

export interface StartNodeOptions {
  readonly logger: Logger;
  readonly clock?: Clock | undefined;
  /** Replaces the configured providers; for tests. */
  readonly providers?: readonly Provider[] | undefined;
}

export interface RunningNode extends AsyncDisposable {
  readonly url: string;
  readonly apiKeyFile: string;
  readonly reconciled: NodeReconciliation;
  /** Providers that need an engine beside the node, and whether it answers. */
  readonly engines: readonly EngineStatus[];
  /** Stops accepting requests, lets running ones finish for a while, and leaves the sandboxes running. */
  stop(): Promise<void>;
}

const { version } = manifest;

const WITHOUT_URL =
  "other nodes cannot reach this node, because advertiseUrl is not set: a request to another node moves the sandbox there";

/** Starts a node: opens its storage, creates the domain, adopts running sandboxes, listens, and starts housekeeping. */
export async function startNode(config: NodeConfig, options: StartNodeOptions): Promise<RunningNode> {
  requireSafeBind(config);
  const { logger, clock = systemClock } = options;
  const onError = (thrown: SandboxError, about: object = {}) => {
    const error = diskFullError(thrown) ?? thrown;
    logger.error({ err: error, ...about }, error.message);
  };
  const metrics = new NodeMetrics();
  const phase = new NodePhase();
  await using undo = new AsyncDisposableStack();

  // Storage
  let domain: Domain | undefined;
  let releases: ReleaseKeeper | undefined;
  let listening: Edges | undefined;
  const describe = () => ({
    isDraining: phase.isDraining,
    sandboxes: domain?.registry.runningCount ?? 0,
    runtimes: [...(releases?.runtimes ?? [])],
  });
  const storage = await openStorage(config, { clock, version, describe, onError });
  undo.defer(() => storage.database[Symbol.dispose]());
  undo.use(ship(config, { storage, clock, metrics, logger }));
  undo.use(storage.audit);
  undo.use(storage.flows);
  storage.flows.subscribe((entries) => metrics.countFlows(entries));
  const { cluster, events, checkpointStore } = storage;
  if (cluster !== undefined) undo.use(cluster);
  else storage.ownKeys.firstKey(config.home);
  if (cluster?.node.url === null) logger.warn(WITHOUT_URL);
  await checkpointStore.clear();

  // Domain
  const guardProcess = cluster && createGuard(config.home, { clock, graceMs: cluster.leases.timing.marginMs });
  const lookMs = config.leaseMs / 3;
  const guard = guardProcess && undo.use(new LeaseGuard({ guard: guardProcess, clock, lookMs, onError }));
  domain = createDomain(config, storage, {
    clock,
    phase,
    providers: options.providers,
    killList: guardProcess?.killList,
    ownPorts: () => [Number(listening && new URL(listening.url).port) || config.port],
    onDeadline: (id, deadlineMs) => guard?.setDeadline(id, deadlineMs),
    onHandoff: ({ id, ...report }) => logger.info({ sandboxId: id, ...report }, "handed off a sandbox"),
    onError,
    onRefusal: (limit) => metrics.countRefusal(limit),
    observeExec: (provider, seconds) => metrics.observeExec(provider, seconds),
    observeCheckpoint: (provider, seconds) => metrics.observeCheckpoint(provider, seconds),
    observeCreate: (provider, seconds, isWarm) => metrics.observeCreate(provider, seconds, isWarm),
  });
  const { registry, providers, pool, sandboxes, prepared, leaseOwnership, reserve } = domain;
  if (options.providers === undefined) {
    for (const provider of providers.byName.values()) undo.defer(() => provider[Symbol.asyncDispose]?.());
  }
  undo.defer(() => registry.release());
  undo.defer(() => cluster?.leases.dispose());
  undo.defer(() => pool.close());
  undo.use(domain.approvals);
  undo.use(prepared);
  undo.defer(() => sandboxes.settled());

  // Sandboxes of the previous process
  await guard?.start();
  if (leaseOwnership !== undefined) {
    await resumeLeases({ registry, providers, ownership: leaseOwnership, onError: domain.onError });
  }
  const reconciler = new NodeReconciler(domain);
  const report = (found: NodeReconciliation) => {
    for (const { id, error } of found.failed) logger.error({ err: error, sandboxId: id }, "could not adopt a sandbox");
    events.emit({ kind: "node.reconciled", tenant: null, sandboxId: null, details: reconciledCounts(found) });
  };
  const reconciled = await reconciler.reconcile();
  report(reconciled);
  const engines = await probeEngines(providers.byName.values());
  for (const { provider, status } of engines) {
    if (!status.available) logger.warn({ provider, hint: status.hint }, `provider ${provider}: ${status.reason}`);
  }

  // Edges
  const webhooks = undo.use(
    new Webhooks({
      records: storage.webhookRecords,
      events,
      allowPrivate: config.allowPrivateWebhooks,
      clock,
      countDelivery: (outcome) => metrics.countWebhookDelivery(outcome),
      onFailure: ({ error, ...about }) => logger.warn({ err: error, ...about }, "webhook delivery failed"),
    }),
  );
  webhooks.start();
  const saved =
    cluster && new SavedRecords({ ...cluster, read: (id) => cluster.states.read(id), onError: domain.onError });
  if (cluster !== undefined && saved !== undefined) {
    const parts = { ...domain, quotas: cluster.quotas, saved, onError };
    cluster.keys.onLimited((account) => void countLimited(account, parts));
  }
  const drain = (body: DrainNodeBody = {}) => drainNode(body, { config, storage, domain, edges, onError });
  const nodes: NodeDirectory =
    cluster === undefined
      ? new StandaloneNodes({
          id: openNodeId(config.home),
          url: () => edges.url,
          version,
          clock,
          count: () => registry.runningCount,
        })
      : { list: () => cluster.registry.list(), drain };
  const edges: Edges = undo.use(
    await openEdges({ config, storage, domain, saved, webhooks, nodes, metrics, version, logger }),
  );
  listening = edges;
  metrics.collectFrom({
    sandboxes: () => countByState(registry.current()),
    pools: () => pool.list(),
    mcpSessions: () => edges.mcp.sessionCount,
    quotas: { tenants: () => edges.usage.ofTenantsHere(), host: () => reserve.report() },
  });

  // Housekeeping, after the node listens: callers come first.
  for (const target of config.pools) pool.set(target);
  const stores = cluster && saved && { saved, leases: cluster.leases };
  releases = new ReleaseKeeper({
    providers: [...providers.byName.values()],
    saved: () => savedSandboxes(new SealedStates(cluster?.control ?? storage.store, storage.keyring)),
    nodes: async () => (await cluster?.registry.list()) ?? [],
  });
  const cpuBalance = options.providers === undefined ? createCpuBalance(clock) : undefined;
  undo.use(startHousekeeping({ config, domain, checkpointStore, releases, cluster: stores, cpuBalance, onError }));
  undo.defer(untilReconciled(reconciler, { clock, tell: report, onError }));
  if (cluster !== undefined) {
    await cluster.registry.start();
    undo.defer(() => cluster.registry.stop());
    // Callers that see the node healthy expect it in the list, and finding its releases starts programs.
    await releases
      .refresh()
      .then(() => cluster.registry.announce())
      .catch((thrown) => onError(SandboxError.from(thrown)));
  }
  events.emit({ kind: "node.started", tenant: null, sandboxId: null, details: { version } });

  const owned = undo.move();
  const stop = async () => {
    if (!phase.isStopping) tell(events, "node.stopping", onError);
    // MCP sessions end first, while the node still serves them.
    await within(clock, config.stopGraceMs, edges.mcp.close());
    // Sandboxes that cannot be handed over in time stay here, and the next start adopts them.
    if (!phase.isDraining && cluster !== undefined) await drain().catch((thrown) => onError(SandboxError.from(thrown)));
    phase.stop();
    await owned.disposeAsync();
  };
  return {
    url: edges.url,
    apiKeyFile: join(config.home, "api-key"),
    reconciled,
    engines,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

interface ShipOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly metrics: NodeMetrics;
  readonly logger: Logger;
}

function ship(config: NodeConfig, { storage: { audit, events, flows }, clock, metrics, logger }: ShipOptions) {
  return startShipping(config, {
    audit,
    events,
    flows,
    node: openNodeId(config.home),
    version,
    clock,
    count: (receiver, outcome, records) => metrics.countShipped(receiver, outcome, records),
    onTrouble: (receiver, { error, dropped }) =>
      logger.warn(
        { err: error, receiver, dropped },
        dropped === undefined ? `cannot ship records to ${receiver}; retrying` : `dropped records for ${receiver}`,
      ),
  });
}

interface DrainOptions {
  readonly config: NodeConfig;
  readonly storage: Storage;
  readonly domain: Domain;
  readonly edges: Edges;
  readonly onError: (error: SandboxError) => void;
}

/** Hands all sandboxes over to other nodes. */
async function drainNode({ deadlineMs }: DrainNodeBody, options: DrainOptions): Promise<void> {
  const { config, storage, domain, edges, onError } = options;
  const { cluster, events } = storage;
  // MCP sessions cannot move, and their sandboxes end with them.
  await within(domain.clock, config.stopGraceMs, edges.mcp.close());
  domain.phase.drain();
  tell(events, "node.draining", onError);
  await cluster?.registry.announce();
  await domain.pool.close();
  await domain.handoffs?.drain(AbortSignal.timeout(deadlineMs ?? config.drainMs));
  // The other nodes must see at once that this one is empty.
  await cluster?.registry.announce().catch((thrown) => onError(SandboxError.from(thrown)));
}

/** A full disk, on which no event can be recorded, must not keep the node from stopping. */
function tell(events: EventLog, kind: "node.stopping" | "node.draining", onError: (error: SandboxError) => void): void {
  try {
    events.emit({ kind, tenant: null, sandboxId: null });
  } catch (thrown) {
    onError(SandboxError.from(thrown));
  }
}

function countByState(records: readonly SandboxRecord[]): SandboxCount[] {
  const groups = Map.groupBy(records, ({ provider, state }) => `${provider} ${state}`);
  return [...groups.values()].map((group) => {
    const { provider, state } = group[0] as SandboxRecord;
    return { provider, state, count: group.length };
  });
}
