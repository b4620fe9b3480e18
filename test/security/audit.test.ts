import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { NodeProcess } from "../node/node-process.ts";
import { startSdkNode } from "../sdk/sdk-node.ts";

const home = sharedDirectory("audit");
const file = join(home, "shipped.jsonl");

/** Attribute keys and bodies of the log records that a collector received. */
const collected: string[] = [];
const collector = createServer(async (request, response) => {
  collected.push(Buffer.concat(await request.toArray()).toString());
  response.end("{}");
});
collector.listen(0, "127.0.0.1");
await once(collector, "listening");
const otlp = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;

const node = await startSdkNode({ home, ship: { file, otlp } }, { providers: [new MockProvider()] });
afterAll(async () => {
  await node.stop();
  collector.closeAllConnections();
  collector.close();
});
const { hostname, port } = new URL(node.url);

/** One refused upgrade of an anonymous caller; resolves with the status line. */
async function refusedUpgrade(path: string, headers = ""): Promise<string> {
  const socket = connect({ host: hostname, port: Number(port) });
  socket.end(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  let text = "";
  socket.on("data", (bytes) => (text += bytes.toString("latin1")));
  await once(socket, "close");
  return text.slice(0, text.indexOf("\r\n"));
}

/** Runs the command line as an operator does. */
async function sandpiper(...argv: string[]): Promise<{ exitCode: number; stdout: string }> {
  const program = join(import.meta.dirname, "../../packages/cli/bin/sandpiper");
  const env = { ...process.env, SANDPIPER_URL: node.url, SANDPIPER_API_KEY: node.apiKey };
  return await new Promise((resolve) => {
    const child = execFile(program, argv, { env }, (_, stdout) => resolve({ exitCode: child.exitCode ?? -1, stdout }));
  });
}

const shippedIds = () =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ type }) => type === "audit")
    .map(({ id }) => id);

describe("an anonymous caller", () => {
  it("adds few entries to the audit log with 2,500 refused upgrades, and removes none", async () => {
    await node.client.keys.create({ name: "older", tenant: "older" });
    for (let sent = 0; sent < 2500; sent += 125) {
      const answers = await Promise.all(Array.from({ length: 125 }, () => refusedUpgrade("/v1/socket")));
      for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 (401 Unauthorized|429 Too Many Requests)$/);
    }
    const listed = await node.client.audit.list({ limit: 1000 });
    expect(listed[0]).toMatchObject({ operation: "createKey", status: 201 });
    expect(listed.length).toBeLessThan(20);
  });

  it("shares that budget over REST, MCP, both WebSocket protocols and pages of other origins", async () => {
    const before = (await node.client.audit.list({ limit: 1000 })).length;
    for (let turn = 0; turn < 5; turn += 1) {
      await fetch(`${node.url}/v1/sandboxes`);
      await fetch(`${node.url}/mcp`, { method: "POST", body: "{}" });
      await refusedUpgrade("/create");
      await refusedUpgrade("/attach/00000000-0000-4000-8000-000000000000", "Origin: https://evil.example.com\r\n");
    }
    expect((await node.client.audit.list({ limit: 1000 })).length).toBe(before);
  });
});

describe("sandpiper audit verify", () => {
  it("exits with 0 for the log and for its shipped file, and with 1 and the place for a changed file", async () => {
    await expect.poll(shippedIds).toEqual((await node.client.audit.list({ limit: 1000 })).map(({ id }) => id));
    expect(await sandpiper("audit", "verify")).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^intact/) });
    expect(await sandpiper("audit", "verify", "--file", file)).toMatchObject({ exitCode: 0 });
    const copy = join(home, "copy.jsonl");
    const lines = readFileSync(file, "utf8").split("\n");
    const at = lines.findIndex((line) => line.includes('"type":"audit"') && line.includes('"id":3,'));
    writeFileSync(copy, lines.toSpliced(at, 1).join("\n"));
    const found = await sandpiper("audit", "verify", "--file", copy, "--json");
    expect(found.exitCode).toBe(1);
    expect(JSON.parse(found.stdout).findings).toMatchObject([{ kind: "missing", fromId: 3, toId: 3 }]);
  });
});

describe("a node that is killed with SIGKILL right after an answer", () => {
  it("has the entry of a command that a WebSocket started", async () => {
    const home = sharedDirectory("audit-socket");
    const config = { home, port: 0, stopGraceMs: 100, logLevel: "silent", defaultProvider: "local" } as const;
    const killed = await NodeProcess.start(config);
    const sandbox = await killed.client.sandboxes.create();
    await sandbox.start("sleep 60");
    await killed.kill();
    await using restarted = await NodeProcess.start(config);
    const entries = await restarted.client.audit.list({ limit: 1000 });
    expect(entries.at(-1)).toMatchObject({ operation: "startProcess", sandboxId: sandbox.id });
    expect(await restarted.client.audit.verify()).toMatchObject({ isIntact: true });
    await (await restarted.client.sandboxes.connect(sandbox.id)).destroy();
  });
});

describe("the receivers of audit entries and events", () => {
  it("get them as they happen", async () => {
    await expect.poll(() => collected.join("")).toContain("createKey");
    expect(collected.join("")).toContain("node.started");
    expect(readFileSync(file, "utf8")).toContain('"kind":"node.started"');
  });

  it("that never answer do not slow requests, and lose nothing of the chain when the node is killed", async () => {
    // Accepts connections and answers none.
    const silent = createServer(() => {});
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const killedHome = sharedDirectory("audit-killed");
    const config = { home: killedHome, port: 0, stopGraceMs: 100, logLevel: "silent" as const, ship: { otlp: url } };
    const killed = await NodeProcess.start(config);
    for (let i = 0; i < 20; i += 1) await killed.client.keys.create({ name: `key ${i}` });
    await killed.kill();
    await using restarted = await NodeProcess.start(config);
    const result = await restarted.client.audit.verify();
    expect(result).toMatchObject({ isIntact: true, entries: 20, lastId: 20 });
    silent.closeAllConnections();
    silent.close();
  });
});
