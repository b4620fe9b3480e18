import { type OperationId, type Route, routes, type SandboxId } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, errorOf, type TestNode } from "./testing/test-node.ts";

interface Sample {
  readonly query?: string;
  readonly json?: object;
  readonly bytes?: string;
}

const command = { command: "true" };
const atPath = { query: "path=/tmp/file" };

/** Well-formed requests for operations that need more than their path. */
const samples: Partial<Record<OperationId, Sample>> = {
  createSandbox: { json: { provider: "mock" } },
  execInSandbox: { json: command },
  startProcess: { json: command },
  writeProcessInput: { bytes: "input" },
  signalProcess: { json: { signal: "SIGTERM" } },
  resizeProcess: { json: { rows: 1, cols: 1 } },
  readFile: atPath,
  writeFile: { ...atPath, bytes: "content" },
  removeFile: atPath,
  statFile: atPath,
  listFiles: { query: "path=/tmp" },
  makeDirectory: { json: { path: "/tmp/new" } },
  moveFile: { json: { from: "/tmp/file", to: "/tmp/moved" } },
  changeMode: { json: { path: "/tmp/file", mode: 0o600 } },
  watchFiles: { query: "path=/tmp" },
  readArchive: { query: "path=/tmp" },
  writeArchive: { query: "path=/tmp", bytes: "" },
  pullImage: { json: { image: "base:1" } },
  setPreview: { json: { isPublic: false } },
  createLink: { json: { port: 8000 } },
  setPool: { json: { target: 1, provider: "mock" } },
  createKey: { json: { name: "new" } },
  createWebhook: { json: { url: "http://127.0.0.1:1/" } },
  decideNetworkRequest: { json: { decision: "allow" } },
};

const operations = (Object.entries(routes) as [OperationId, Route][]).map(([id, route]) => ({ id, ...route }));
type Operation = (typeof operations)[number];
const guarded = operations.filter(({ access }) => access !== "anyone");
const ofSandbox = guarded.filter(({ path }) => path.includes("{id}"));
const withJson = guarded.filter(({ body }) => body?.kind === "json");
const withBytes = guarded.filter(({ body }) => body?.kind === "bytes");
const title = "$method $path";

let node: TestNode;
let sandbox: { id: string; token: string };
let processId: string;
beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
  sandbox = await node.create();
  await node.request("PUT", `/v1/sandboxes/${sandbox.id}/files?path=/tmp/file`, { bytes: "as it was" });
  await node.request("POST", `/v1/sandboxes/${sandbox.id}/checkpoints`, { json: { name: "kept" } });
  const started = await node.request("POST", `/v1/sandboxes/${sandbox.id}/processes`, {
    json: { command: "cat", stdin: true },
  });
  processId = routes.startProcess.answer.schema.parse(await started.json()).id;
});
afterAll(() => node[Symbol.asyncDispose]());

function pathOf({ path }: Pick<Operation, "path">, params: Record<string, string> = {}): string {
  const all: Record<string, string> = {
    id: sandbox.id,
    process: processId,
    key: node.owner.split("_")[1] as string,
    webhook: "none",
    checkpoint: "kept",
    project: "none",
    cache: "none",
    volume: "sandpiper-data-01234567-89ab-4cde-8f01-23456789abcd",
    machine: "none",
    port: "8000",
    ...params,
  };
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => all[name] as string);
}

type SendOptions = Parameters<TestNode["request"]>[2] & { query?: string; path?: string };

function send(operation: Operation, options: SendOptions) {
  const sample = samples[operation.id] ?? {};
  const { query = sample.query, path = pathOf(operation), ...rest } = options;
  const json = operation.body?.kind === "json" ? (sample.json ?? {}) : undefined;
  return node.request(operation.method, query === undefined ? path : `${path}?${query}`, {
    ...(json === undefined ? {} : { json }),
    ...(sample.bytes === undefined ? {} : { bytes: sample.bytes }),
    ...rest,
  });
}

/** A snapshot of everything that a request could change. */
async function everything() {
  const admin = node.authenticator.authenticate(node.key({ scopes: ["admin"], tenant: "watcher" }));
  const live = node.access.open(admin, sandbox.id, { readOnly: false });
  return {
    sandboxes: node.records.list({ limit: 100 }).items,
    keys: node.keys.list().filter(({ tenant }) => tenant !== "watcher"),
    pools: node.pool.list(),
    webhooks: node.webhooks.list(),
    checkpoints: await node.ownership.peek(sandbox.id as SandboxId),
    drains: [...node.nodes.drains],
    files: await Array.fromAsync(live.files.list("/", { depth: 0 })),
    processes: await live.processes(),
  };
}

/** Sends each request, and checks that it is refused with this status and changes nothing. */
async function expectRefused(operation: Operation, status: number, ...requests: readonly SendOptions[]) {
  const before = await everything();
  const errors: Awaited<ReturnType<typeof errorOf>>[] = [];
  for (const request of requests) {
    const error = await errorOf(await send(operation, request));
    expect(error.status, JSON.stringify(error)).toBe(status);
    expect(error.message).not.toBe("");
    expect(await everything()).toEqual(before);
    errors.push(error);
  }
  return errors;
}

const adminKey = () => node.key({ scopes: ["admin"], tenant: "watcher" });
const withQuery = ({ id }: Operation, more: string) => ({ query: `${samples[id]?.query ?? ""}&${more}` });

describe.each(guarded)(title, (operation) => {
  it("requires a valid credential", async () => {
    const revoked = node.keys.create({ name: "revoked", tenant: "watcher" });
    node.keys.revoke(revoked.id);
    const almost = `${node.owner.slice(0, -2)}xx`;
    const unknown = `spk_00000000_${"a".repeat(43)}`;
    const wrong = [undefined, "nonsense", unknown, almost, revoked.key, `${sandbox.token.slice(0, -2)}xx`];
    const basic = `Basic ${Buffer.from(`:${node.owner}`).toString("base64")}`;
    const errors = await expectRefused(
      operation,
      401,
      ...wrong.map((key) => ({ key })),
      { key: undefined, headers: { authorization: basic } },
      { key: undefined, ...withQuery(operation, `key=${node.owner}`) },
    );
    for (const { code } of errors) expect(code).toBe("unauthenticated");
  });

  it("refuses an unknown query parameter", async () => {
    const [error] = await expectRefused(operation, 400, { key: adminKey(), ...withQuery(operation, "unknown=1") });
    expect(error?.reason).toBe("invalid_query");
  });
});

describe.each(guarded.filter(({ readOnly }) => !readOnly))(title, (operation) => {
  it("is refused with a read-only key", async () => {
    const [error] = await expectRefused(operation, 403, { key: node.key({ tenant: "mine", scopes: ["read"] }) });
    expect(error?.code).toBe("permission_denied");
  });
});

describe.each(guarded.filter(({ access }) => access === "admin"))(title, (operation) => {
  it("is refused without the scope admin", async () => {
    await expectRefused(operation, 403, {}, { key: sandbox.token });
  });
});

describe.each(ofSandbox)(title, (operation) => {
  it("answers not found to another tenant, and with another sandbox's token", async () => {
    const otherTenant = node.key({ tenant: "other" });
    const neighbour = await node.create();
    const path = pathOf(operation, { id: crypto.randomUUID() });
    for (const key of [otherTenant, neighbour.token]) {
      const [hidden, missing] = await expectRefused(operation, 404, { key }, { key, path });
      expect([hidden?.code, hidden?.reason]).toEqual([missing?.code, missing?.reason]);
    }
  });

  it.each(["..%2f..%2fetc%2fpasswd", "%00", "..", `${"a".repeat(300)}`])(
    "answers not found for the id %s",
    async (id) => {
      await expectRefused(operation, 404, { path: pathOf(operation, { id }) });
    },
  );
});

describe.each(
  guarded.filter(({ path }) => /\{(process|key|webhook|checkpoint|cache|volume|machine|port)\}/.test(path)),
)(title, (operation) => {
  it.each(["..%2f..%2fetc", "%00", "unknown"])("answers not found for the name %s", async (name) => {
    const kinds = ["process", "key", "webhook", "checkpoint", "cache", "volume", "machine", "port"];
    const path = pathOf(operation, Object.fromEntries(kinds.map((kind) => [kind, name])));
    await expectRefused(operation, 404, { key: adminKey(), path });
  });
});

describe.each(guarded.filter(({ query }) => query !== undefined && "path" in query.shape))(title, (operation) => {
  it("refuses a path that is empty, too long, or contains NUL", async () => {
    const paths = ["%00", "/tmp/a%00b", "a".repeat(5000), ""];
    await expectRefused(operation, 400, ...paths.map((path) => ({ query: `path=${path}` })));
  });
});

describe.each(withJson)(title, (operation) => {
  it("refuses an invalid body", async () => {
    const headers = { "content-type": "application/json" };
    const bodies = ['{"a":', "[]", "null", '"text"', '{"unknown":1}', "\u0000", new Uint8Array([0x7b, 0xff, 0x7d])];
    const key = adminKey();
    await expectRefused(operation, 400, ...bodies.map((bytes) => ({ key, json: undefined, bytes, headers })));
    const sample = JSON.stringify(samples[operation.id]?.json ?? {});
    const plain = { key, json: undefined, bytes: sample, headers: { "content-type": "text/plain" } };
    await expectRefused(operation, 415, plain);
  });

  it("refuses a body that is too large, with and without Content-Length", async () => {
    const bytes = `{"a":"${"x".repeat(64 * 1024)}"}`;
    const request = { key: adminKey(), json: undefined, bytes };
    const headers = { "content-type": "application/json" };
    const withLength = { ...headers, "content-length": String(bytes.length) };
    const errors = await expectRefused(operation, 413, { ...request, headers }, { ...request, headers: withLength });
    for (const { reason } of errors) expect(reason).toBe("body_too_large");
  });
});

describe.each(withBytes)(title, (operation) => {
  it("refuses a body that is larger than the sandbox's disk or the limit for files of the audit log", async () => {
    const key = operation.access === "admin" ? adminKey() : node.owner;
    await expectRefused(operation, 413, { key, bytes: "x", headers: { "content-length": String(1e13) } });
  });
});
