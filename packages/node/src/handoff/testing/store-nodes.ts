import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Provider } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { type SandboxId, type SandboxResource, sandboxResourceSchema } from "@sandpiper/protocol";
import { composeParts, openHome } from "../../start/domain.ts";
import { parseNodeConfig } from "../../config/load-node-config.ts";
import { serve } from "../../daemon/serve.ts";
import { openNodeCluster } from "../../cluster/node-cluster.ts";
import { createHttpApp } from "../../http/app.ts";
import type { Bindings } from "../../http/call.ts";
import { FakeNodes } from "../../http/testing/fake-nodes.ts";
import { SqliteAuditLog } from "../../records/sqlite-audit-log.ts";
import { SqliteWebhookRecords } from "../../records/sqlite-webhook-records.ts";
import { NodeMetrics } from "../../telemetry/node-metrics.ts";
import { Webhooks } from "../../webhooks/webhooks.ts";
import { ClusterApp } from "../../cluster/cluster-app.ts";
import { SandboxesAtRest } from "../sandboxes-at-rest.ts";
import { SavedRecords } from "../saved-records.ts";
import { LeaseWhereabouts } from "../../cluster/whereabouts.ts";

const onError = () => {};
const quiet = { debug: onError, info: onError, warn: onError, error: onError };

export type StoreNode = Awaited<ReturnType<StoreNodes["start"]>>;

/** Nodes without a daemon that share a store, with sandboxes that are simulated and a time that stands still. */
export class StoreNodes implements AsyncDisposable {
  readonly clock = new FakeClock();
  /** Names of states that were read from the store for lists. */
  readonly read: SandboxId[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), "sandpiper-store-nodes-"));
  readonly #undo = new AsyncDisposableStack();

  constructor() {
    this.#undo.defer(() => rmSync(this.#directory, { recursive: true, force: true }));
  }

  async start(name: string, provider: Provider) {
    const { clock } = this;
    const undo = this.#undo.use(new AsyncDisposableStack());
    let app: ClusterApp | undefined;
    const serving = await serve({
      host: "127.0.0.1",
      port: 0,
      app: { fetch: (request, env) => (app as ClusterApp).fetch(request, env as Bindings) },
    });
    undo.defer(() => serving.close({ graceMs: 0 }));
    const home = join(this.#directory, name);
    mkdirSync(home);
    const store = `file://${join(this.#directory, "store")}`;
    const config = parseNodeConfig({ home, store, clusterSecret: "s".repeat(32), advertiseUrl: serving.url });
    const database = openHome(config);
    undo.defer(() => database[Symbol.dispose]());
    const describe = () => ({ isDraining: false, sandboxes: 0 });
    const cluster = await openNodeCluster(store, config, { database, version: "1.2.3", clock, describe, onError });
    undo.use(cluster);
    const parts = composeParts(config, { clock, database, cluster, providers: [provider], onError });
    const { service, live, records, handoffs } = parts;
    undo.defer(() => live.release());
    undo.defer(() => cluster.leases.dispose());
    undo.defer(() => parts.pool.close());
    const webhooks = new Webhooks({
      records: new SqliteWebhookRecords(database),
      events: parts.events,
      allowPrivate: true,
    });
    undo.use(webhooks);
    app = new ClusterApp({
      ...cluster,
      app: createHttpApp({
        ...parts,
        keys: cluster.keys,
        pools: parts.pool,
        webhooks,
        nodes: new FakeNodes(),
        audit: new SqliteAuditLog(database),
        metrics: new NodeMetrics(),
        version: "1.2.3",
        logger: quiet,
        isStopping: () => false,
        bodyLimitBytes: 64 * 1024,
        corsOrigins: [],
        clock,
      }),
      whereabouts: new LeaseWhereabouts({
        nodeId: cluster.node.id,
        leases: cluster.leases,
        isHere: (id) => records.get(id) !== undefined,
      }),
      nodes: () => cluster.registry.list(),
      atRest: new SandboxesAtRest({
        saved: new SavedRecords({
          ...cluster,
          read: (id) => {
            this.read.push(id);
            return cluster.states.read(id);
          },
          onError,
        }),
        leases: cluster.leases,
        describe: (principal, record) => service.resource(principal, record, null),
      }),
      authenticator: parts.authenticator,
      learn: (credential) => cluster.keys.learn(credential),
      onNudge: (id) => cluster.leases.poke(id),
      corsOrigins: [],
    });
    await cluster.registry.start();
    undo.defer(() => cluster.registry.stop());
    const keyOf = async (tenant: string) => (await cluster.keys.create({ name: tenant, tenant })).key;
    const key = await keyOf("mine");
    const request = (method: string, path: string, { json, as = key }: { json?: object; as?: string } = {}) =>
      fetch(serving.url + path, {
        method,
        headers: { authorization: `Bearer ${as}`, ...(json && { "content-type": "application/json" }) },
        body: json === undefined ? null : JSON.stringify(json),
      });
    return {
      ...parts,
      leases: cluster.leases,
      url: serving.url,
      keyOf,
      request,
      async create(body: object = {}): Promise<SandboxResource> {
        const response = await request("POST", "/v1/sandboxes", { json: { provider: provider.name, ...body } });
        if (response.status !== 201) throw new Error(await response.text());
        return sandboxResourceSchema.parse(await response.json());
      },
      /** Its sandboxes are left to others. */
      drain: async () => await handoffs?.drain(new AbortController().signal),
      /** Its sandboxes stay with it until its leases have ended. */
      crash: () => undo.disposeAsync(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#undo.disposeAsync();
  }
}
