import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkStore, createLogger, parseNodeConfig, repairSandbox, startNode } from "@sandpiper/node/server";
import { MockProvider } from "@sandpiper/providers";
import { Client } from "@sandpiper/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hashApiKey } from "../../packages/node/src/auth/api-key.ts";
import { DirectoryStore } from "../../packages/node/src/store/directory-store.ts";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";

const SECRET = "a secret of this test, long enough";
const NEXT = "the next secret of this test, long";
const root = mkdtempSync(join(tmpdir(), "sandpiper-control-"));
const undo = new AsyncDisposableStack();
const store = new DirectoryStore(join(root, "store"));
const received: string[] = [];
let foreignUrl: string;
let first: Awaited<ReturnType<typeof start>>;
let second: Awaited<ReturnType<typeof start>>;
let apiKey: string;

/** A real node on a shared directory, with simulated sandboxes. */
async function start(name: string, secrets: { clusterSecret: string; acceptedClusterSecrets?: string[] }) {
  const logger = createLogger({ logLevel: "silent", logFormat: "json" });
  const config = parseNodeConfig({
    home: join(root, name),
    port: await freePort(),
    store: `file://${join(root, "store")}`,
    leaseMs: 3000,
    maxSkewMs: 0,
    ...secrets,
  });
  return await startNode(config, { logger, providers: [new MockProvider()] });
}

const get = (url: string, path: string, key = apiKey) =>
  fetch(url + path, { headers: { authorization: `Bearer ${key}` } });
const textOf = async (key: string) => Buffer.from((await store.get(key))?.bytes ?? []).toString();
const contentOf = (stored: string) => stored.slice(0, stored.lastIndexOf("\n"));

beforeAll(async () => {
  const foreign = createServer((request, response) => {
    received.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    response.end("{}");
  });
  await new Promise<void>((resolve) => foreign.listen(0, "127.0.0.1", resolve));
  undo.defer(() => void foreign.close());
  foreignUrl = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}`;
  first = await start("first", { clusterSecret: SECRET });
  second = await start("second", { clusterSecret: SECRET });
  apiKey = readFileSync(first.apiKeyFile, "utf8").trim();
});

afterAll(async () => {
  await second.stop();
  await first.stop();
  await undo.disposeAsync();
  rmSync(root, { recursive: true, force: true });
});

describe("an attacker who can write to the store", () => {
  it("gets no key accepted by adding it to the keys, and the nodes put the keys back", async () => {
    const stored = await textOf("keys.json");
    const text = `spk_0a1b2c3d_${"A".repeat(43)}`;
    const content = JSON.parse(contentOf(stored));
    const admin = { ...content.keys[0], id: "0a1b2c3d", name: "evil", hash: hashApiKey(text).toString("hex") };
    const forged = JSON.stringify({ revision: 999, keys: [...content.keys, admin] });
    for (const bytes of [forged, forged + stored.slice(stored.lastIndexOf("\n"))]) {
      await store.put("keys.json", Buffer.from(bytes));
      expect((await get(first.url, "/v1/keys", text)).status).toBe(401);
      expect((await get(second.url, "/v1/keys", text)).status).toBe(401);
      expect((await get(second.url, "/v1/keys")).status, "known keys stay valid").toBe(200);
      await expect.poll(() => textOf("keys.json"), { timeout: 5000 }).not.toContain("evil");
    }
  });

  it("does not revive a revoked key by putting older keys back", async () => {
    await using client = new Client({ url: first.url, apiKey });
    const { key, id } = await client.keys.create({ name: "leaked", scopes: ["admin"] });
    expect((await get(second.url, "/v1/keys", key)).status).toBe(200);
    const old = await store.get("keys.json");
    await client.keys.revoke(id);
    await expect.poll(async () => (await get(second.url, "/v1/keys", key)).status, { timeout: 5000 }).toBe(401);
    const revoked = contentOf(await textOf("keys.json"));
    await store.put("keys.json", old?.bytes ?? new Uint8Array());
    expect((await get(first.url, "/v1/keys", key)).status).toBe(401);
    expect((await get(second.url, "/v1/keys", key)).status).toBe(401);
    await expect.poll(async () => contentOf(await textOf("keys.json")), { timeout: 5000 }).toBe(revoked);
  });

  it("receives no credential at a URL in a forged lock or node entry", async () => {
    await using client = new Client({ url: first.url, apiKey });
    const sandbox = await client.sandboxes.create({ provider: "mock" });
    const key = `locks/${sandbox.id}.lock`;
    const lock = await textOf(key);
    const redirected = contentOf(lock).replaceAll(first.url, foreignUrl);
    expect(redirected).toContain(foreignUrl);
    for (const bytes of [redirected, redirected + lock.slice(lock.lastIndexOf("\n"))]) {
      await store.put(key, Buffer.from(bytes));
      // Its owner may have replaced the forged lock already.
      expect([200, 500]).toContain((await get(second.url, `/v1/sandboxes/${sandbox.id}`)).status);
      await fetch(`${second.url}/v1/sandboxes/${sandbox.id}/handoff`, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: "{}",
      });
    }
    const [entry] = await Array.fromAsync(store.list("nodes/"), ({ key: each }) => each);
    const node = contentOf(await textOf(entry ?? ""));
    const fake = { ...JSON.parse(node), id: crypto.randomUUID(), url: foreignUrl };
    await store.put(`nodes/${fake.id}.json`, Buffer.from(JSON.stringify(fake)));
    expect((await get(second.url, "/v1/sandboxes")).status).toBe(200);
    expect(JSON.stringify(await (await get(second.url, "/v1/nodes")).json())).not.toContain(foreignUrl);
    expect(received).toEqual([]);
  });

  it("does not stop a running sandbox for good: its owner replaces the forged lock", async () => {
    await using client = new Client({ url: first.url, apiKey });
    await using other = new Client({ url: second.url, apiKey });
    const sandbox = await client.sandboxes.create({ provider: "mock" });
    const key = `locks/${sandbox.id}.lock`;
    await store.put(key, Buffer.from(contentOf(await textOf(key))));
    await expect
      .poll(async () => (await get(second.url, `/v1/sandboxes/${sandbox.id}`)).status, { timeout: 5000 })
      .toBe(200);
    await other.sandboxes.connect(sandbox.id).then((found) => found.destroy());
  });
});

describe("an operator", () => {
  it("finds a forged lock of a sandbox at rest, and repairs the sandbox", async () => {
    await using client = new Client({ url: first.url, apiKey });
    const sandbox = await client.sandboxes.create({ provider: "mock" });
    await sandbox.pause();
    const key = `locks/${sandbox.id}.lock`;
    await first.stop();
    const forged = contentOf(await textOf(key));
    await store.put(key, Buffer.from(forged));
    const config = parseNodeConfig({
      home: join(root, "operator"),
      store: `file://${join(root, "store")}`,
      clusterSecret: SECRET,
      leaseMs: 3000,
      maxSkewMs: 0,
    });
    const bad = async () => (await checkStore(config)).filter((object) => object.key.startsWith("locks/"));
    expect(await bad()).toEqual([{ key, fault: "no signature" }]);
    expect((await get(second.url, `/v1/sandboxes/${sandbox.id}`)).status).toBe(500);
    const options = { acceptsOlderState: false };
    expect(await repairSandbox(config, sandbox.id, options)).toBe("written");
    expect(await repairSandbox(config, sandbox.id, options)).toBe("sound");
    expect(await bad()).toEqual([]);
    expect((await get(second.url, `/v1/sandboxes/${sandbox.id}`)).status).toBe(200);
    await using other = new Client({ url: second.url, apiKey });
    await other.sandboxes.connect(sandbox.id).then((found) => found.destroy());
    first = await start("first", { clusterSecret: SECRET });
  });
});

describe("a replacement of the cluster's secret", () => {
  it("keeps keys, tokens and forwarding valid on both nodes after each restart", async () => {
    await using client = new Client({ url: first.url, apiKey });
    const { token, id } = await client.sandboxes.create({ provider: "mock" });
    const both = async () => {
      for (const { url } of [first, second]) {
        expect((await get(url, "/v1/keys")).status).toBe(200);
        expect((await get(url, `/v1/sandboxes/${id}`, token ?? "")).status).toBe(200);
        expect((await get(url, "/v1/sandboxes")).headers.get("sandpiper-missing-nodes")).toBe(null);
      }
    };
    const steps = [
      { clusterSecret: SECRET, acceptedClusterSecrets: [NEXT] },
      { clusterSecret: NEXT, acceptedClusterSecrets: [SECRET] },
    ];
    for (const secrets of steps) {
      await second.stop();
      second = await start("second", secrets);
      await both();
      await first.stop();
      first = await start("first", secrets);
      await both();
    }
  });
});
