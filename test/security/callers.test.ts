import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { createLogger, type NodeConfigOptions, parseNodeConfig, startNode } from "@sandpiper/node/server";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** A node at its own port, whose sandboxes are simulated: what callers send never reaches one. */
async function startTestNode(config: NodeConfigOptions) {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-callers-"));
  const provider = new MockProvider();
  const logger = createLogger({ logLevel: "silent", logFormat: "json" });
  const running = await startNode(parseNodeConfig({ ...config, home, port: 0 }), { logger, providers: [provider] });
  const admin = readFileSync(running.apiKeyFile, "utf8").trim();
  const request = (path: string, { key = admin, ...init }: RequestInit & { readonly key?: string } = {}) =>
    fetch(`${running.url}${path}`, { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } });
  const post = (path: string, body: object, key?: string) => {
    const headers = { "content-type": "application/json" };
    return request(path, { method: "POST", body: JSON.stringify(body), headers, ...(key !== undefined && { key }) });
  };
  return {
    home,
    provider,
    admin,
    request,
    post,
    newKey: async () =>
      ((await (await post("/v1/keys", { name: "small", tenant: "small" })).json()) as { key: string }).key,
    metrics: async () => (await request("/metrics")).text(),
    /** Sends the beginning of a request. Resolves to the answer when the node has closed the connection. */
    begin: (head: readonly string[], body = "") => {
      const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
      return { socket, answer: answerOf(socket, `${[...head, "Host: localhost"].join("\r\n")}\r\n\r\n${body}`) };
    },
    async [Symbol.asyncDispose]() {
      await running.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function answerOf(socket: Socket, text: string): Promise<string> {
  let answer = "";
  socket.on("data", (piece) => (answer += piece)).on("error", () => {});
  socket.write(text);
  await new Promise((resolve) => socket.once("close", resolve));
  return answer;
}

type TestNode = Awaited<ReturnType<typeof startTestNode>>;
let node: TestNode;
const MIB = 1024 * 1024;

describe("a caller with a small key", () => {
  beforeAll(async () => {
    node = await startTestNode({ bodyTimeoutMs: 1500 });
  });
  afterAll(() => node[Symbol.asyncDispose]());

  it("cannot fill the database with sandboxes that fail", async () => {
    const key = await node.newKey();
    node.provider.faults.bootFailure = new SandboxError("instance_crashed", { message: "no" });
    const env = { A: "x".repeat(120_000) };
    const statuses: number[] = [];
    for (let k = 0; k < 140; k++)
      statuses.push((await node.post("/v1/sandboxes", { provider: "mock", env }, key)).status);
    delete node.provider.faults.bootFailure;
    // 60 a minute fail by themselves; the rest are refused.
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(60);
    const list = await (await node.request("/v1/sandboxes?limit=1000", { key })).text();
    expect(list.length).toBeLessThan(MIB);
    expect(list).not.toContain("xxxx");
    const { size } = statSync(join(node.home, "node.db"));
    const wal = statSync(join(node.home, "node.db-wal")).size;
    expect(size + wal).toBeLessThan(30 * MIB);
    const oversized = { provider: "mock", env: { A: "x".repeat(MIB) } };
    expect((await node.post("/v1/sandboxes", oversized)).status).toBe(400);
  });

  it("cannot hold memory with unfinished bodies", async () => {
    const key = await node.newKey();
    const head = ["POST /v1/sandboxes HTTP/1.1", `Authorization: Bearer ${key}`, "Content-Type: application/json"];
    const begun = Array.from({ length: 60 }, () =>
      node.begin([...head, `Content-Length: ${15 * MIB}`], "{".repeat(1000)),
    );
    const answers = await Promise.all(begun.map(({ answer }) => answer));
    const of = (status: number) => answers.filter((answer) => answer.startsWith(`HTTP/1.1 ${status} `));
    expect(of(408)).toHaveLength(4);
    expect(of(429)).toHaveLength(56);
    expect(of(429)[0]).toMatch(/^retry-after: 1\r$/im);
    expect((await node.post("/v1/sandboxes", { provider: "mock" }, key)).status).toBe(201);
    expect(await node.metrics()).toMatch(/sandpiper_refusals_total\{limit="body_budget"\} 56/);
  });
});

describe("a caller that sends too much", () => {
  beforeAll(async () => {
    node = await startTestNode({ maxConnectionsPerAddress: 50, rateLimits: { perKey: 5, perAddress: 20 } });
  });
  afterAll(() => node[Symbol.asyncDispose]());

  it("is refused with Retry-After, and disturbs no other key", async () => {
    const key = await node.newKey();
    const answers = await Promise.all(Array.from({ length: 40 }, () => node.request("/v1/sandboxes", { key })));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused[0]?.json()).toMatchObject({ code: "resource_exhausted", reason: "rate_limited" });
    const head = [
      "GET /v1/socket HTTP/1.1",
      "Connection: Upgrade",
      "Upgrade: websocket",
      `Authorization: Bearer ${key}`,
    ];
    const sockets = Array.from({ length: 20 }, () => node.begin(head).answer);
    const mcp = Array.from({ length: 20 }, () => node.post("/mcp", {}, key));
    expect((await Promise.all(sockets)).some((answer) => answer.startsWith("HTTP/1.1 429 "))).toBe(true);
    expect((await Promise.all(mcp)).map(({ status }) => status)).toContain(429);
    expect((await node.request("/v1/sandboxes")).status).toBe(200);
    expect(await node.metrics()).toMatch(/sandpiper_refusals_total\{limit="key"\} \d+/);
  });

  it.each([
    ["GET /health", 200],
    ["POST /health", 405],
    ["GET /v1/sandboxes", 401],
    ["POST /v1/sandboxes", 401],
    ["PUT /v1/sandboxes/0d5ae3b2-6f1c-4a87-9c0e-3a1f5b6c7d8e/files?path=/a", 401],
    ["POST /mcp", 401],
  ])("cannot hold a connection with an unfinished body, without a credential: %s", async (target, status) => {
    for (const framing of ["Content-Length: 1000000", "Transfer-Encoding: chunked"]) {
      const answer = await node.begin([`${target} HTTP/1.1`, framing], "5\r\nhello\r\n").answer;
      expect(answer.slice(0, 13)).toBe(`HTTP/1.1 ${status} `);
    }
  });

  it("has a limited number of connections from one address", async () => {
    const open = Array.from({ length: 80 }, () => node.begin(["GET /health HTTP/1.1", "X: unfinished"]).socket);
    await expect.poll(() => open.filter((socket) => socket.closed).length).toBeGreaterThanOrEqual(30);
    for (const socket of open) socket.destroy();
    await expect
      .poll(() =>
        node.request("/health").then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200);
    expect(await node.metrics()).toMatch(/sandpiper_refusals_total\{limit="address_connections"\} \d+/);
  });

  it("cannot try keys without end; callers with a key at the same address continue", async () => {
    const statuses: number[] = [];
    for (let k = 0; k < 300 && !statuses.includes(429); k++) {
      statuses.push((await node.request("/v1/sandboxes", { key: "wrong" })).status);
    }
    expect(statuses.at(-1)).toBe(429);
    expect((await node.request("/v1/sandboxes")).status).toBe(200);
    expect((await node.request("/health")).status).toBe(200);
  });
});
