import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Provider } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { type SandboxId, type SandboxResource, sandboxResourceSchema } from "@sandpiper/protocol";
import { expect } from "vitest";
import { openCluster } from "../../cluster/open-cluster.ts";
import { parseNodeConfig } from "../../config/load-node-config.ts";
import { createHttpApp } from "../../http/app.ts";
import type { Bindings } from "../../http/call.ts";
import { FakeNodes } from "../../http/testing/fake-nodes.ts";
import { UsageReport } from "../../sandboxes/usage-report.ts";
import { serve } from "../../server/serve.ts";
import { createPeers } from "../../start/edges.ts";
import { openHome } from "../../start/storage.ts";
import { openStore } from "../../store/open-store.ts";
import { NodeMetrics } from "../../telemetry/node-metrics.ts";
import { ScratchHome } from "../../testing/scratch-home.ts";
import { testDomain } from "../../testing/test-domain.ts";
import { Webhooks } from "../../webhooks/webhooks.ts";
import { SavedRecords } from "../saved-records.ts";

/** Short, because time also passes while a handoff uses the disk. */
const STEP_MS = 50;
const onError = () => {};
const quiet = { debug: onError, info: onError, warn: onError, error: onError };

interface StoreNodeSettings {
  readonly advertiseUrl?: string | null;
  readonly checkpoints?: string;
  /** Another store than that of the other nodes. */
  readonly store?: string;
  /** The runtimes that it announces. */
  readonly runtimes?: string[];
}

export type StoreNode = Awaited<ReturnType<StoreNodes["start"]>>;

/** Nodes without a daemon that share a store, with simulated sandboxes and a fake clock. */
export class StoreNodes implements AsyncDisposable {
  readonly clock = new FakeClock();
  /** The sandboxes whose states were read from the store for lists. */
  readonly read: SandboxId[] = [];
  readonly #directory = new ScratchHome().path;
  readonly #undo = new AsyncDisposableStack();

  /**
   * `advertiseUrl` is the node's address by default, and null for a node that has no URL; the test reaches it always.
   * Sandboxes get automatic checkpoints only if `checkpoints` says so.
   */
  async start(name: string, provider: Provider, settings: StoreNodeSettings = {}) {
    const { clock } = this;
    const undo = this.#undo.use(new AsyncDisposableStack());
    let app: ReturnType<typeof createHttpApp> | undefined;
    let parts: ReturnType<typeof testDomain> | undefined;
    const serving = await serve({
      host: "127.0.0.1",
      port: 0,
      app: { fetch: (request, env) => (app as ReturnType<typeof createHttpApp>).fetch(request, env as Bindings) },
    });
    undo.defer(() => serving.close({ graceMs: 0 }));
    const home = join(this.#directory, name);
    // A node that starts again has its home.
    mkdirSync(home, { recursive: true });
    const { store = `file://${join(this.#directory, "store")}` } = settings;
    const { advertiseUrl = serving.url, checkpoints = "none" } = settings;
    const secret = { clusterSecret: "s".repeat(32) };
    const config = parseNodeConfig({
      ...secret,
      home,
      store,
      advertiseUrl,
      host: "0.0.0.0",
      defaults: { checkpoints },
    });
    const database = openHome(config);
    undo.defer(() => database[Symbol.dispose]());
    const describe = () => ({
      isDraining: parts?.phase.isDraining ?? false,
      sandboxes: parts?.registry.runningCount ?? 0,
      runtimes: settings.runtimes,
    });
    const options = {
      store: openStore(store),
      ownKeys: { keys: [], tenants: new Map() },
      version: "1.2.3",
      clock,
      describe,
      onError,
    };
    const cluster = undo.use(await openCluster({ ...options, config }));
    parts = testDomain(config, { clock, database, cluster, providers: [provider], onError });
    const { registry, handoffs } = parts;
    handoffs?.open();
    undo.defer(() => registry.release());
    undo.defer(() => cluster.leases.dispose());
    undo.defer(() => parts.pool.close());
    const { events, webhookRecords: records } = parts;
    const webhooks = undo.use(new Webhooks({ records, events, allowPrivate: true }));
    const saved = new SavedRecords({
      ...cluster,
      read: (id) => {
        this.read.push(id);
        return cluster.states.read(id);
      },
      onError,
    });
    const peers = createPeers({ config, cluster, domain: parts, saved }, undo);
    app = createHttpApp({
      ...parts,
      keys: cluster.keys,
      usage: new UsageReport({ ...parts, saved }),
      peers,
      webhooks,
      nodes: new FakeNodes(),
      metrics: new NodeMetrics(),
      version: "1.2.3",
      logger: quiet,
      bodyLimitBytes: 64 * 1024,
      corsOrigins: [],
      clock,
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
      id: cluster.node.id,
      clusterKeys: cluster.keys,
      /** Writes a heartbeat with the current number of sandboxes. */
      announce: () => cluster.registry.announce(),
      leases: cluster.leases,
      proof: cluster.proof,
      url: serving.url,
      keyOf,
      request,
      async create(body: object = {}): Promise<SandboxResource> {
        const response = await request("POST", "/v1/sandboxes", { json: { provider: provider.name, ...body } });
        if (response.status !== 201) throw new Error(await response.text());
        return sandboxResourceSchema.parse(await response.json());
      },
      /** Releases the node's sandboxes. */
      drain: async () => await handoffs?.drain(new AbortController().signal),
      /** Answers no more requests, while its heartbeats and leases continue. */
      stopServing: () => serving.close({ graceMs: 0 }),
      /** Leaves the node's leases in place until they expire. */
      crash: () => undo.disposeAsync(),
    };
  }

  /** Lets owners renew their leases, and waiters poll, until the work is done. */
  async whileTimePasses<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    done.catch(() => {});
    const pass = async () => {
      await this.clock.advance(STEP_MS);
      return isDone;
    };
    await expect.poll(pass, { interval: 10 }).toBe(true);
    return await done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#undo.disposeAsync();
  }
}
