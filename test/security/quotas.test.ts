import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxError } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { MockProvider } from "@sandpiper/providers";
import { Client } from "@sandpiper/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freshDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { SmallDisk } from "../chaos/small-disk.ts";
import { type SdkNode, startSdkNode } from "../sdk/sdk-node.ts";

const STACK_TRACE = /\n\s+at |\.ts:\d+/;
const refused = { code: "resource_exhausted", reason: "quota_exceeded" };

let node: SdkNode;
let admin: Client;
beforeAll(async () => {
  node = await startSdkNode({ home: freshDirectory("quotas") }, { providers: [new MockProvider()] });
  admin = node.client;
});
afterAll(() => node[Symbol.asyncDispose]());

async function caller(body: Omit<Parameters<Client["keys"]["create"]>[0], "name">) {
  const { id, key } = await admin.keys.create({ name: "caller", ...body });
  return { id, key, client: new Client({ url: node.url, apiKey: key }) };
}

const get = (path: string, key: string) => fetch(`${node.url}${path}`, { headers: { authorization: `Bearer ${key}` } });

describe("a quota", () => {
  it("of disk, processes and checkpoints is enforced for a key and follows its update at once", async () => {
    const { id, client } = await caller({
      tenant: "a",
      quota: { maxDiskMib: 100, maxProcesses: 1, maxCheckpoints: 1 },
    });
    const sandbox = await client.sandboxes.create({ provider: "mock", diskMib: 60 });
    const another = () => client.sandboxes.create({ provider: "mock", diskMib: 60 });
    expect(await rejection(another())).toMatchObject({ ...refused, details: { quota: "maxDiskMib", key: id } });
    const running = await sandbox.start("sleep 600");
    expect(await rejection(sandbox.exec("true"))).toMatchObject({ ...refused, details: { quota: "maxProcesses" } });
    await sandbox.checkpoint();
    expect(await rejection(sandbox.checkpoint())).toMatchObject({ ...refused, details: { quota: "maxCheckpoints" } });
    const listed = (await admin.keys.list({ usage: true })).find((key) => key.id === id);
    expect(listed?.usage).toMatchObject({ sandboxes: 1, diskMib: 60, processes: 1, checkpoints: 1 });
    await admin.keys.update(id, { quota: { maxDiskMib: 120, maxProcesses: null, maxCheckpoints: 2 } });
    await another();
    await sandbox.exec("true");
    await sandbox.checkpoint();
    await running.kill();
  });

  it("of a tenant is shared by its keys", async () => {
    const [one, two] = [await caller({ tenant: "b" }), await caller({ tenant: "b" })];
    await admin.tenants.update("b", { quota: { maxSandboxes: 1 } });
    await one.client.sandboxes.create({ provider: "mock" });
    expect(await rejection(two.client.sandboxes.create({ provider: "mock" }))).toMatchObject({
      ...refused,
      details: { quota: "maxSandboxes", tenant: "b" },
    });
    const tenant = (await admin.tenants.list({ usage: true })).find(({ name }) => name === "b");
    expect(tenant).toMatchObject({ quota: { maxSandboxes: 1 }, usage: { sandboxes: 1 } });
  });

  it("of WebSockets, requests and bytes in bodies is enforced and released", async () => {
    const { client, key, id } = await caller({
      tenant: "d",
      quota: { maxSockets: 0, maxBodyBytes: 1000, maxRequests: 1 },
    });
    const sandbox = await client.sandboxes.create({ provider: "mock" });
    const answer = await fetch(`${node.url}/v1/sandboxes/${sandbox.id}/exec`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ command: "cat", stdin: "x".repeat(2000) }),
    });
    expect([answer.status, await answer.json()]).toMatchObject([
      429,
      { ...refused, details: { quota: "maxBodyBytes" } },
    ]);
    const message = { jsonrpc: "2.0", id: 1, method: "initialize", params: { text: "x".repeat(2000) } };
    const mcp = await fetch(`${node.url}/mcp`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(message),
    });
    expect([mcp.status, await mcp.json()]).toMatchObject([
      429,
      { error: { data: { details: { quota: "maxBodyBytes" } } } },
    ]);
    await expect
      .poll(async () => (await admin.keys.list({ usage: true })).find((each) => each.id === id)?.usage)
      .toMatchObject({ requests: 0, bodyBytes: 0, sockets: 0 });
    const socket = new WebSocket(`${node.url.replace("http", "ws")}/v1/socket`, ["sandpiper.v1", `bearer.${key}`]);
    await new Promise((resolve) => socket.addEventListener("error", resolve));
    expect(socket.readyState).not.toBe(WebSocket.OPEN);
  });

  it("of concurrent requests and of file watches is enforced and released", async () => {
    const { client, key, id } = await caller({ tenant: "f", quota: { maxRequests: 1, maxWatches: 1 } });
    const sandbox = await client.sandboxes.create({ provider: "mock" });
    const usage = async () => (await admin.keys.list({ usage: true })).find((each) => each.id === id)?.usage;

    const watcher = await sandbox.files.watch("/tmp");
    expect(await rejection(sandbox.files.watch("/tmp"))).toMatchObject({
      ...refused,
      details: { quota: "maxWatches" },
    });
    watcher.close();
    await expect.poll(usage).toMatchObject({ watches: 0 });
    (await sandbox.files.watch("/tmp")).close();

    const leave = new AbortController();
    const headers = { authorization: `Bearer ${key}`, accept: "text/event-stream" };
    await fetch(`${node.url}/v1/events`, { headers, signal: leave.signal });
    const second = await get("/v1/sandboxes", key);
    expect([second.status, await second.json()]).toMatchObject([
      429,
      { ...refused, details: { quota: "maxRequests" } },
    ]);
    leave.abort();
    await expect.poll(usage).toMatchObject({ requests: 0 });
    expect((await get("/v1/sandboxes", key)).status).toBe(200);
  });
});

it("a key with the scope metrics reads the metrics and nothing else", async () => {
  const { key } = await caller({ tenant: "e", scopes: ["metrics"] });
  const metrics = await get("/metrics", key);
  expect([metrics.status, await metrics.text()]).toEqual([200, expect.stringContaining("sandpiper_tenant_usage")]);
  for (const path of ["/v1/sandboxes", "/v1/keys", "/v1/events", "/v1/tenants"]) {
    expect((await get(path, key)).status, path).toBe(403);
  }
});

it("a node on a full disk refuses new work without a stack trace, keeps its sandboxes, and recovers", async () => {
  await using disk = await SmallDisk.mount(join(tmpdir(), `sandpiper-reserve-${process.pid}`), 48);
  const config = { home: disk.path, reserve: { diskMib: 16 } };
  await using full = await startSdkNode(config, { providers: [new MockProvider()] });
  const sandbox = await full.client.sandboxes.create({ provider: "mock" });
  await disk.fill(8 * 1024 * 1024);
  const health = async () => await (await fetch(`${full.url}/health`)).json();
  await expect.poll(health).toMatchObject({ status: "ok", lowOn: ["disk"] });
  const attempts = [
    () => full.client.sandboxes.create({ provider: "mock" }),
    () => sandbox.fork(),
    () => sandbox.checkpoint(),
    () => sandbox.files.write("/tmp/x", new Uint8Array(1000)),
  ];
  for (const attempt of attempts) {
    const error: SandboxError = await rejection(attempt());
    expect(error).toMatchObject({
      code: "resource_exhausted",
      reason: "reserve_reached",
      details: { resource: "disk" },
    });
    expect(`${error.message} ${error.hint}`).toMatch(/of free disk at .* 16 MiB in reserve .*delete files/s);
    expect(JSON.stringify(error)).not.toMatch(STACK_TRACE);
  }
  expect((await sandbox.exec("true")).exitCode).toBe(0);
  await disk.free();
  await expect.poll(health).not.toHaveProperty("lowOn");
  await full.client.sandboxes.create({ provider: "mock" });
});
