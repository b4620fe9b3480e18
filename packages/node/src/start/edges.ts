import type { Logger } from "pino";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { NodeDirectory } from "../cluster/standalone-nodes.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { Peers } from "../forward/peers.ts";
import { RequestForwarder } from "../forward/request-forwarder.ts";
import type { SavedRecords } from "../handoff/saved-records.ts";
import { StoredSandboxes } from "../handoff/stored-sandboxes.ts";
import { createHttpApp } from "../http/app.ts";
import { RequestLog } from "../http/request-log.ts";
import { LazyEndpoint } from "../mcp/lazy-endpoint.ts";
import { PreviewProxy } from "../proxy/preview-proxy.ts";
import { UsageReport } from "../sandboxes/usage-report.ts";
import { serve } from "../server/serve.ts";
import type { NodeMetrics } from "../telemetry/node-metrics.ts";
import { type AttachedSockets, attachSockets } from "../upgrade/attach-sockets.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import type { Domain } from "./domain.ts";
import type { Storage } from "./storage.ts";

export interface EdgesOptions {
  readonly config: NodeConfig;
  readonly storage: Storage;
  readonly domain: Domain;
  readonly saved: SavedRecords | undefined;
  readonly webhooks: Webhooks;
  readonly nodes: NodeDirectory;
  readonly metrics: NodeMetrics;
  readonly version: string;
  readonly logger: Logger;
}

export type Edges = Awaited<ReturnType<typeof openEdges>>;

/** Opens the node's interfaces to the outside: REST, WebSockets and MCP on one server. */
export async function openEdges(options: EdgesOptions) {
  const { config, storage, domain, saved, webhooks, nodes, metrics, version, logger } = options;
  const { audit } = storage;
  const { clock, authenticator, callers, bodies, momentary, phase, locator } = domain;
  const { corsOrigins, bodyLimitBytes } = config;
  await using undo = new AsyncDisposableStack();
  const peers = storage.cluster && saved && createPeers({ config, cluster: storage.cluster, domain, saved }, undo);
  const mcp = new LazyEndpoint(async () => {
    const { createMcpEndpoint } = await import("./mcp.ts");
    const own = { app, server: serving.server };
    return createMcpEndpoint(config, { authenticator, callers, bodies, momentary, audit, metrics, logger, clock, own });
  });
  const usage = new UsageReport({ ...domain, saved });
  const app = createHttpApp({
    ...domain,
    usage,
    nodes,
    peers,
    webhooks,
    audit,
    metrics,
    mcp,
    version,
    logger,
    bodyLimitBytes,
    corsOrigins,
  });
  const log = new RequestLog({ audit, metrics, logger }, clock);
  const proxy = undo.use(new PreviewProxy({ ...domain, peers, log }));
  const { certFile, keyFile } = config.tls;
  let sockets: AttachedSockets | undefined;
  const serving = await serve({
    app,
    host: config.host,
    port: config.port,
    tls: certFile !== null && keyFile !== null ? { certFile, keyFile } : undefined,
    intercept: (request, response, given) => proxy.request(request, response, given),
    onUpgradeServer: (server) => {
      const { cluster } = storage;
      const intercept = proxy.upgrade.bind(proxy);
      const relay = cluster && peers && { peers, proof: cluster.proof, silenceMs: config.leaseMs };
      sockets = attachSockets(server, { ...domain, relay, audit, logger, phase, locator, corsOrigins, intercept });
    },
    connections: { ...config, onRefusal: (limit) => metrics.countRefusal(limit) },
    clock,
  });
  undo.defer(() => serving.close({ graceMs: config.stopGraceMs }));
  undo.defer(() => sockets?.close());
  undo.defer(() => proxy.cutSockets());
  const owned = undo.move();
  return { url: serving.url, mcp, usage, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

interface PeersOptions extends Pick<EdgesOptions, "config" | "domain"> {
  readonly cluster: Cluster;
  readonly saved: SavedRecords;
}

export function createPeers({ config, cluster, domain, saved }: PeersOptions, undo: AsyncDisposableStack): Peers {
  const { clock, access, locator, handoffs } = domain;
  const { proof, leases } = cluster;
  return new Peers({
    proof,
    forwarder: undo.use(new RequestForwarder({ proof, clock, recheckMs: config.leaseMs })),
    nodes: () => cluster.registry.list(),
    stored: new StoredSandboxes({
      saved,
      leases,
      nodeId: cluster.node.id,
      describe: (principal, record, owner) => access.resource(principal, record, owner),
    }),
    isOwnedBy: (id, nodeId) => locator.isOwnedBy(id, nodeId),
    onNudge: (id) => {
      leases.poke(id);
      handoffs?.prefetched(id);
    },
  });
}
