import { request as requestHttp } from "node:http";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { initialize, type McpNode, refusalOf, startMcpNode } from "./testing/mcp-node.ts";

const LIMIT_BYTES = 64 * 1024;
let node: McpNode;
beforeAll(async () => {
  const corsOrigins = ["https://app.example.com"];
  const mcp = { maxSessions: 3, allowedHosts: ["sandboxes.example.com"] };
  node = await startMcpNode({
    provider: new MockProvider(),
    config: { corsOrigins, mcp, bodyLimitBytes: LIMIT_BYTES },
  });
});
afterAll(() => node[Symbol.asyncDispose]());

const runCommand = (command: string) => ({ name: "run_command", arguments: { command } });

describe("/mcp", () => {
  it("serves a session with tools and a stateful sandbox, and destroys the sandbox at its end", async () => {
    const session = await node.open();
    const { result: listed } = await node.call("tools/list", {}, { session });
    expect(listed.tools.map(({ name }) => name)).toContain("run_command");
    await node.call("tools/call", runCommand("echo hello > file"), { session });
    const { result } = await node.call("tools/call", runCommand("cat file"), { session });
    expect(result.content[0]?.text).toContain("hello");
    expect(await node.sandboxIds()).toHaveLength(1);
    expect((await node.send("DELETE", { session })).status).toBe(200);
    expect(await node.sandboxIds()).toEqual([]);
    expect(await refusalOf(await node.post(initialize, { session }))).toMatchObject({ status: 404, code: -32001 });
  });

  it("needs a key that may create sandboxes, and says how to send it", async () => {
    for (const key of ["", "spk_nobody"]) {
      const refused = await node.post(initialize, { key });
      expect(refused.headers.get("www-authenticate")).toBe("Bearer");
      expect(await refusalOf(refused)).toMatchObject({
        status: 401,
        message: expect.stringContaining("Authorization"),
      });
    }
    const { key } = await node.makeKey({ scopes: ["read"] });
    expect(await refusalOf(await node.post(initialize, { key }))).toMatchObject({
      status: 403,
      reason: "missing_scope",
    });
    await using sandbox = await node.admin.sandboxes.create();
    const token = (await node.admin.sandboxes.connect(sandbox.id)).info.token as string;
    expect((await node.post(initialize, { key: token })).status).toBe(403);
  });

  it("reports invalid parameters as the client's mistake, and names them", async () => {
    const session = await node.open();
    const answer = await node.call("resources/read", { uri: 5 }, { session });
    expect(answer).toMatchObject({ error: { code: -32602, message: expect.stringContaining("uri") } });
    await node.send("DELETE", { session });
  });

  it("lets only the key that opened a session use it", async () => {
    const { key } = await node.makeKey({ tenant: "one" });
    const { key: sibling } = await node.makeKey({ tenant: "one" });
    const session = await node.open({ key });
    for (const other of [node.adminKey, sibling]) {
      expect((await node.post(initialize, { key: other, session })).status).toBe(404);
      expect((await node.send("GET", { key: other, session })).status).toBe(404);
      expect((await node.send("DELETE", { key: other, session })).status).toBe(404);
    }
    expect(await node.call("ping", {}, { key, session })).toMatchObject({ result: {} });
    await node.send("DELETE", { key, session });
  });

  it("limits the sessions of a key", async () => {
    const { key } = await node.makeKey();
    const sessions = [await node.open({ key }), await node.open({ key }), await node.open({ key })];
    expect(await refusalOf(await node.post(initialize, { key }))).toMatchObject({
      status: 429,
      reason: "session_limit",
    });
    const session = await node.open();
    await node.send("DELETE", { session });
    for (const one of sessions) await node.send("DELETE", { key, session: one });
    await node.send("DELETE", { key, session: await node.open({ key }) });
  });

  it("ends a session when its key is revoked", async () => {
    const { key, id } = await node.makeKey();
    const session = await node.open({ key });
    const stream = await node.send("GET", { key, session });
    expect(stream.status).toBe(200);
    await node.admin.keys.revoke(id);
    await stream.text();
    expect((await node.post(initialize, { key, session })).status).toBe(401);
  });
});

describe("a web page that calls /mcp", () => {
  it.each(["https://evil.example.com", "http://sandboxes.example.com", "null"])(
    "is refused from %s",
    async (origin) => {
      const refused = await node.post(initialize, { headers: { origin } });
      expect(await refusalOf(refused)).toMatchObject({ status: 403, reason: "origin_not_allowed" });
    },
  );

  it("is served from a configured origin, and may read the session's id", async () => {
    const origin = "https://app.example.com";
    const answer = await node.post(initialize, { headers: { origin } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
    expect(answer.headers.get("access-control-expose-headers")).toContain("Mcp-Session-Id");
    await node.send("DELETE", { session: answer.headers.get("mcp-session-id") as string });
    const asked = { origin, "access-control-request-method": "POST" };
    const preflight = await node.send("OPTIONS", { key: "", headers: asked });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-headers")).toContain("Mcp-Session-Id");
  });

  it("is refused under an unknown host name, even if its origin matches (DNS rebinding)", async () => {
    const status = (host: string, origin?: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { host, ...(origin === undefined ? {} : { origin }) };
        requestHttp(node.url, { method: "GET", headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode as number);
        })
          .on("error", reject)
          .end();
      });
    expect(await status("evil.example.com:4747", "http://evil.example.com:4747")).toBe(403);
    expect(await status("evil.example.com:4747")).toBe(403);
    expect(await status("localhost.evil.example.com")).toBe(403);
    // These pass the check of the host and lack only a key.
    expect(await status("sandboxes.example.com")).toBe(401);
    expect(await status("localhost:1", "http://localhost:1")).toBe(401);
    expect(await status("[::1]:1")).toBe(401);
    expect(await status("10.0.0.7:4747", "http://10.0.0.7:4747")).toBe(401);
  });
});

describe("an invalid request to /mcp", () => {
  it.each([
    ["malformed JSON", "{", { status: 400, code: -32700, reason: "malformed_json" }],
    ["a batch", [initialize], { status: 400, code: -32600, reason: "batch_not_supported" }],
    ["too long", `"${"x".repeat(LIMIT_BYTES)}"`, { status: 413, reason: "body_too_large" }],
    ["too deep", `${"[".repeat(100)}${"]".repeat(100)}`, { status: 400, reason: "body_too_deep" }],
    ["without a session", { jsonrpc: "2.0", id: 1, method: "tools/list" }, { status: 400, reason: "no_session" }],
    ["a number", 7, { status: 400, reason: "no_session" }],
    ["an invalid initialize", { method: "initialize" }, { status: 400 }],
  ])("is refused when its body is %s, and leaves no session", async (_, body, refusal) => {
    const { key } = await node.makeKey();
    for (let turn = 0; turn < 4; turn++) {
      expect(await refusalOf(await node.post(body, { key }))).toMatchObject(refusal);
    }
    await node.send("DELETE", { key, session: await node.open({ key }) });
  });

  it("is refused with another content type or Accept header", async () => {
    const refused = await node.post(initialize, { headers: { "content-type": "text/plain" } });
    expect(await refusalOf(refused)).toMatchObject({ status: 415 });
    expect((await node.post(initialize, { headers: { accept: "text/html" } })).status).toBe(406);
  });

  it("is refused with an unknown protocol version", async () => {
    const session = await node.open();
    const headers = { "mcp-protocol-version": "1999-01-01" };
    const refused = await node.post({ jsonrpc: "2.0", id: 1, method: "tools/list" }, { session, headers });
    expect(await refusalOf(refused)).toMatchObject({ status: 400, message: expect.stringContaining("1999-01-01") });
    await node.send("DELETE", { session });
  });

  it("is refused with an unsupported HTTP method", async () => {
    const refused = await node.send("PUT");
    expect(refused.status).toBe(405);
    expect(refused.headers.get("allow")).toBe("GET, POST, DELETE");
  });
});

describe("the metrics of MCP", () => {
  it("count its sessions, and its requests by operation", async () => {
    const scrape = async () => {
      const headers = { authorization: `Bearer ${node.adminKey}` };
      return (await fetch(node.url.replace("/mcp", "/metrics"), { headers })).text();
    };
    const session = await node.open();
    expect(await scrape()).toMatch(/^sandpiper_mcp_sessions 1$/m);
    await node.send("DELETE", { session });
    const text = await scrape();
    expect(text).toMatch(/^sandpiper_mcp_sessions 0$/m);
    expect(text).toMatch(/_count\{operation="openMcpSession",status="200"\}/);
  });
});

describe("the audit log of MCP", () => {
  it("records opened and closed sessions, refusals, and the operations of each session", async () => {
    const { key, id: actor } = await node.makeKey();
    const session = await node.open({ key });
    await node.call("tools/call", runCommand("true"), { key, session });
    await node.send("DELETE", { key, session });
    const { key: reader, id: refused } = await node.makeKey({ scopes: ["read"] });
    await node.post(initialize, { key: reader });
    const listed = await fetch(node.url.replace("/mcp", "/v1/audit?limit=1000"), {
      headers: { authorization: `Bearer ${node.adminKey}` },
    });
    const { items } = (await listed.json()) as { items: { actor: string; operation: string; status: number }[] };
    const kept = items.filter((entry) => [actor, refused].includes(entry.actor) && !/Process$/.test(entry.operation));
    expect(kept.map(({ operation, status }) => `${operation} ${status}`)).toEqual([
      "openMcpSession 200",
      "createSandbox 201",
      "deleteSandbox 204",
      "closeMcpSession 200",
      "callMcp 403",
    ]);
  });
});
