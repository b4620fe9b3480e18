import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Provider } from "@sandpiper/core";
import {
  type CreateKeyBody,
  type ErrorBody,
  errorBodySchema,
  type SandboxResource,
  sandboxResourceSchema,
} from "@sandpiper/protocol";
import { onTestFinished } from "vitest";
import { parseNodeConfig } from "../../config/load-node-config.ts";
import { SqliteWebhookRecords } from "../../records/sqlite-webhook-records.ts";
import { UsageReport } from "../../sandboxes/usage-report.ts";
import { serve } from "../../server/serve.ts";
import { NodeMetrics } from "../../telemetry/node-metrics.ts";
import { testDomain } from "../../testing/test-domain.ts";
import { Webhooks } from "../../webhooks/webhooks.ts";
import { createHttpApp } from "../app.ts";
import type { HttpDependencies } from "../http-dependencies.ts";
import { FakeNodes } from "./fake-nodes.ts";

export interface TestNodeOptions {
  readonly provider: Provider;
  readonly deps?: Partial<HttpDependencies> | undefined;
}

export type RequestBody = ConstructorParameters<typeof Response>[0];

export interface RequestOptions {
  readonly key?: string | undefined;
  readonly json?: unknown;
  readonly bytes?: RequestBody | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

export type TestNode = Awaited<ReturnType<typeof createTestNode>>;

/** A complete node with the given provider, without its daemon. */
export async function createTestNode({ provider, deps: overrides }: TestNodeOptions) {
  await using undo = new AsyncDisposableStack();
  const home = mkdtempSync(join(tmpdir(), "sandpiper-http-"));
  undo.defer(() => rmSync(home, { recursive: true, force: true }));
  const parts = testDomain(parseNodeConfig({ home }), { providers: [provider], onError: () => {} });
  const { database, registry, pool, records, sandboxes, keys, events, audit } = parts;
  undo.defer(() => database[Symbol.dispose]());
  undo.defer(() => registry.release());
  undo.defer(async () => {
    for (const record of records.live()) await sandboxes.destroy(record, {});
  });
  undo.defer(() => pool.close());
  undo.use(parts.prepared);
  const webhooks = undo.use(new Webhooks({ records: new SqliteWebhookRecords(database), events, allowPrivate: true }));
  const logged: { readonly level: string; readonly fields: object; readonly message: string }[] = [];
  const log = (level: string) => (fields: object, message: string) => void logged.push({ level, fields, message });
  const nodes = new FakeNodes();
  const app = createHttpApp({
    ...parts,
    usage: new UsageReport(parts),
    nodes,
    webhooks,
    metrics: new NodeMetrics(),
    version: "1.2.3",
    logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    bodyLimitBytes: 64 * 1024,
    corsOrigins: [],
    ...overrides,
  });

  const key = (body: Partial<CreateKeyBody> = {}) => keys.create({ name: "test", ...body }).key;
  const owner = key({ tenant: "mine" });
  const init = (method: string, options: RequestOptions): RequestInit & { duplex: "half" } => ({
    method,
    headers: {
      ...("key" in options && options.key === undefined ? {} : { authorization: `Bearer ${options.key ?? owner}` }),
      ...(options.json === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers,
    },
    body: options.json === undefined ? (options.bytes ?? null) : JSON.stringify(options.json),
    signal: options.signal ?? null,
    duplex: "half",
  });
  /** Sends a request without a server, with the owner's key unless `key` is set; `key: undefined` sends none. */
  const request = async (method: string, path: string, options: RequestOptions = {}) =>
    app.request(path, init(method, options));
  const owned = undo.move();
  return {
    ...parts,
    home,
    app,
    audit,
    webhooks,
    nodes,
    logged,
    key,
    owner,
    request,
    /** Sends requests over a real connection. */
    async listen() {
      const serving = await serve({ app, host: "127.0.0.1", port: 0 });
      const fetchFrom = (method: string, path: string, options: RequestOptions = {}) =>
        fetch(serving.url + path, init(method, options));
      return {
        url: serving.url,
        fetch: fetchFrom,
        [Symbol.asyncDispose]: () => serving.close({ graceMs: 0 }),
      };
    },
    async create(body: object = {}, options: RequestOptions = {}): Promise<SandboxResource & { token: string }> {
      const response = await request("POST", "/v1/sandboxes", {
        json: { provider: provider.name, ...body },
        ...options,
      });
      if (response.status !== 201) throw new Error(await response.text());
      const resource = sandboxResourceSchema.parse(await response.json());
      return { ...resource, token: resource.token as string };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A node for one test, which disposes of it at its end. */
export async function nodeOfTest(options: TestNodeOptions) {
  const node = await createTestNode(options);
  onTestFinished(() => node[Symbol.asyncDispose]());
  return node;
}

/** The status and the error of a refused request. */
export async function errorOf(response: Response): Promise<ErrorBody & { status: number }> {
  return { status: response.status, ...errorBodySchema.parse(await response.json()) };
}
