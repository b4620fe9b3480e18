import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { rejection } from "@sandpiper/core/testing";
import { createLogger } from "@sandpiper/node/server";
import { MockProvider } from "@sandpiper/providers";
import { Client } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { freshDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { startSdkNode } from "../sdk/sdk-node.ts";

const home = freshDirectory("credentials");

async function start() {
  const lines: string[] = [];
  const logger = createLogger({ logLevel: "trace", logFormat: "json", write: (line) => lines.push(line) });
  const node = await startSdkNode({ home }, { logger, providers: [new MockProvider()] });
  const clientOf = (apiKey: string) => new Client({ url: node.url, apiKey });
  return { ...node, lines, clientOf, admin: node.client };
}

const codeOf = async (work: Promise<unknown>) => (await rejection(work)).code;

describe("credentials", () => {
  it("appear in no log line, event, audit entry or database file", async () => {
    await using node = await start();
    const { key } = await node.admin.keys.create({ name: "one", tenant: "one" });
    const wrong = `${key.slice(0, -8)}AAAAAAAA`;
    await using client = node.clientOf(key);
    const sandbox = await client.sandboxes.create({ provider: "mock", env: { PASSWORD: "hunter2hunter2" } });
    const token = sandbox.token ?? "";
    await sandbox.exec("true");
    expect(await codeOf(node.clientOf(wrong).sandboxes.connect(sandbox.id))).toBe("unauthenticated");
    expect(await codeOf(node.clientOf(`${token}x`).sandboxes.connect(sandbox.id))).toBe("unauthenticated");
    expect(await codeOf(node.clientOf(token).sandboxes.create())).toBe("permission_denied");
    expect(await codeOf(client.sandboxes.connect(token as never))).toBe("not_found");
    const reported = JSON.stringify([node.lines, await node.admin.pastEvents({ limit: 1000 })]);
    for (const secret of [node.apiKey, key, wrong, token]) expect(reported).not.toContain(secret.slice(-40));
    expect(reported).not.toContain("hunter2hunter2");
    for (const file of readdirSync(home).filter((name) => name.startsWith("node.db"))) {
      const content = readFileSync(join(home, file)).toString("latin1");
      for (const secret of [node.apiKey, key, token]) expect(content).not.toContain(secret.slice(-40));
    }
  });

  it("stop working on revocation: open processes and event streams end, new requests are refused", async () => {
    await using node = await start();
    const { id, key } = await node.admin.keys.create({ name: "one", tenant: "one" });
    await using client = node.clientOf(key);
    const sandbox = await client.sandboxes.create({ provider: "mock" });
    const process_ = await sandbox.start("sleep 600");
    await using events = client.events();
    await events.ready;
    await node.admin.keys.revoke(id);
    expect(await codeOf(process_.wait())).toBe("unauthenticated");
    expect(await codeOf(Array.fromAsync(events))).toBe("unauthenticated");
    expect(await codeOf(sandbox.exec("true"))).toBe("unauthenticated");
    const mine = await node.admin.sandboxes.connect(sandbox.id);
    expect(mine.state).toBe("ready");
  });

  it("of one tenant reveal nothing of another: sandboxes, events, names, labels and idempotency keys", async () => {
    await using node = await start();
    const keyOf = async (tenant: string) => (await node.admin.keys.create({ name: tenant, tenant })).key;
    await using one = node.clientOf(await keyOf("one"));
    await using two = node.clientOf(await keyOf("two"));
    const labels = { team: "secret" };
    const theirs = await one.sandboxes.create({ provider: "mock", name: "shared", labels, idempotencyKey: "k" });
    const mine = await two.sandboxes.create({ provider: "mock", name: "shared", labels, idempotencyKey: "k" });
    expect(mine.id).not.toBe(theirs.id);
    const found = await Array.fromAsync(two.sandboxes.list({ name: "shared", labels }));
    expect(found.map(({ id }) => id)).toEqual([mine.id]);
    const events = await two.pastEvents({ limit: 1000 });
    expect(new Set(events.map(({ sandboxId }) => sandboxId))).toEqual(new Set([mine.id]));
    expect(await two.pastEvents({ sandbox: theirs.id })).toEqual([]);
    for (const work of [two.pools.list(), two.keys.list(), two.webhooks.list()]) {
      expect(await codeOf(work)).toBe("permission_denied");
    }
  });
});
