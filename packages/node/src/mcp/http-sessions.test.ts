import { type CallToolResult, McpServer } from "@modelcontextprotocol/server";
import { FakeClock } from "@sandpiper/core/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CredentialWatch } from "../auth/credential-watch.ts";
import { HttpSessions } from "./http-sessions.ts";
import { initialize } from "./testing/mcp-node.ts";

const IDLE_MS = 2000;
const owner = { keyId: "key", credential: "secret", origin: "http://node.example" };
let clock: FakeClock;
let sessions: HttpSessions;
let ended: number;
let waiting: PromiseWithResolvers<string>;

beforeEach(() => {
  clock = new FakeClock();
  ended = 0;
  waiting = Promise.withResolvers();
  sessions = new HttpSessions({
    converse: () => ({
      createServer,
      async [Symbol.asyncDispose]() {
        ended++;
      },
    }),
    credentials: new CredentialWatch({ authenticate: () => ({}) as never }, clock),
    maxPerKey: 10,
    idleMs: IDLE_MS,
    clock,
    onError: (thrown) => {
      throw thrown;
    },
  });
});
afterEach(() => sessions.close());

/** A server with one tool, which answers when the test resolves `waiting`. */
function createServer(): McpServer {
  const server = new McpServer({ name: "test", version: "1" });
  server.registerTool("wait", {}, async (ctx): Promise<CallToolResult> => {
    ctx.mcpReq.signal.addEventListener("abort", () => waiting.reject(new Error("canceled")));
    return { content: [{ type: "text", text: await waiting.promise }] };
  });
  return server;
}

function requestOf(
  method: string,
  session: string,
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
): Request {
  const accept = "application/json, text/event-stream";
  return new Request("http://node/mcp", {
    method,
    signal,
    headers: { accept, "content-type": "application/json", "mcp-session-id": session, ...headers },
  });
}

const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "wait", arguments: {} } };

async function open() {
  const session = sessions.open(owner);
  await (await session.handle(requestOf("POST", ""), initialize)).text();
  return session;
}

describe("an MCP session over HTTP", () => {
  it("ends after its idle timeout", async () => {
    const session = await open();
    await clock.advance(IDLE_MS - 1);
    await (await session.handle(requestOf("POST", session.id), { jsonrpc: "2.0", id: 2, method: "ping" })).text();
    await clock.advance(IDLE_MS - 1);
    expect(sessions.count).toBe(1);
    await clock.advance(1);
    expect(sessions.count).toBe(0);
    await session.end();
    expect(ended).toBe(1);
    expect(() => sessions.get(session.id, owner)).toThrow("no such MCP session");
  });

  it("is not idle while a client waits for an answer, or listens", async () => {
    const session = await open();
    const answer = await session.handle(requestOf("POST", session.id), call);
    await clock.advance(10 * IDLE_MS);
    waiting.resolve("done");
    expect(await answer.text()).toContain("done");
    const listening = await session.handle(requestOf("GET", session.id), undefined);
    await clock.advance(10 * IDLE_MS);
    expect(sessions.count).toBe(1);
    await listening.body?.cancel();
    await clock.advance(IDLE_MS);
    expect(sessions.count).toBe(0);
  });

  it("counts a client that leaves once, so that another one still keeps it from being idle", async () => {
    const session = await open();
    const leaving = new AbortController();
    const listening = await session.handle(requestOf("GET", session.id, {}, leaving.signal), undefined);
    leaving.abort();
    await listening.body?.cancel().catch(() => {});
    const answer = await session.handle(requestOf("POST", session.id), call);
    await (await session.handle(requestOf("POST", session.id), { jsonrpc: "2.0", id: 2, method: "ping" })).text();
    await clock.advance(10 * IDLE_MS);
    expect(sessions.count).toBe(1);
    waiting.resolve("done");
    expect(await answer.text()).toContain("done");
  });

  it("sends the answer to a client that lost its connection and reconnects", async () => {
    const session = await open();
    const headers = { "mcp-protocol-version": "2025-11-25" };
    const answer = await session.handle(requestOf("POST", session.id, headers), call);
    const resume = (lastId: string) =>
      session.handle(requestOf("GET", session.id, { ...headers, "last-event-id": lastId }), undefined);
    let lastId = "";
    for await (const piece of answer.body as ReadableStream<Uint8Array>) {
      lastId = /^id: (\S+)$/m.exec(new TextDecoder().decode(piece))?.[1] ?? "";
      break;
    }
    const resumed = await resume(lastId);
    waiting.resolve("done");
    expect(await resumed.text()).toContain("done");
    expect(await (await resume(lastId)).text()).toContain("done");
    expect((await resume("999")).status).toBe(400);
  });

  it("cancels running calls when it ends", async () => {
    const session = await open();
    const answer = await session.handle(requestOf("POST", session.id), call);
    await session.end();
    await answer.text();
    await expect(waiting.promise).rejects.toThrow("canceled");
    expect(ended).toBe(1);
  });

  it("cancels a call when its client cancels it", async () => {
    const session = await open();
    const answer = await session.handle(requestOf("POST", session.id), call);
    const canceled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    expect((await session.handle(requestOf("POST", session.id), canceled)).status).toBe(202);
    await expect(waiting.promise).rejects.toThrow("canceled");
    await answer.body?.cancel();
  });
});
