import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MockProvider } from "@sandpiper/providers";
import { Client } from "@sandpiper/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { freePort } from "../store/testing/free-port.ts";
import { PORT, PreviewBed } from "./testing/preview-bed.ts";

const store = mkdtempSync(join(tmpdir(), "sandpiper-preview-store-"));
let [owner, other]: PreviewBed[] = [];
beforeAll(async () => {
  mkdirSync(join(store, "store"));
  const start = async () =>
    await PreviewBed.start(new MockProvider(), {
      store: `file://${store}/store`,
      clusterSecret: "a secret of this test, long enough",
      port: await freePort(),
      previews: { domain: "preview.example.com" },
      drainMs: 1000,
    });
  owner = await start();
  other = await start();
  other.key = readFileSync(owner.node.apiKeyFile, "utf8").trim();
});
afterAll(async () => {
  await other?.[Symbol.asyncDispose]();
  await owner?.[Symbol.asyncDispose]();
  rmSync(store, { recursive: true, force: true });
});

const beds = () => [owner as PreviewBed, other as PreviewBed] as const;

describe("a preview in a cluster", () => {
  it("is served by every node, with the same decisions and headers", async () => {
    const [here, there] = beds();
    const sandbox = await here.sandbox((request, response) => {
      response.setHeader("set-cookie", "mine=1; Domain=example.com");
      response.end(JSON.stringify({ url: request.url, headers: request.headers }));
    });
    const host = `${PORT}-${sandbox.id}.preview.example.com`;
    const headers = {
      authorization: `Bearer ${here.key}`,
      cookie: "a=1; SANDPIPER_NODE=2",
      "x-sandpiper-preview": "lie",
    };
    const [near, far] = await Promise.all([here, there].map((bed) => bed.ask(host, "/x?y", { headers })));
    expect(far?.status).toBe(200);
    expect(far?.headers["set-cookie"]).toEqual(["mine=1"]);
    const seen = JSON.parse(far?.text ?? "");
    expect(seen).toEqual(JSON.parse(near?.text ?? ""));
    expect(seen.headers).toMatchObject({ cookie: "a=1", "x-forwarded-host": host, "x-forwarded-proto": "https" });
    expect(JSON.stringify(seen)).not.toMatch(/spk_|x-sandpiper/);
  });

  it("is private and public on every node at once, and links work on all", async () => {
    const [here, there] = beds();
    const sandbox = await here.sandbox((_, response) => response.end("page"));
    const host = `${PORT}-${sandbox.id}.preview.example.com`;
    expect((await there.ask(host, "/")).status).toBe(401);
    const { url } = await there.api("POST", `/v1/sandboxes/${sandbox.id}/links`, { port: PORT });
    const { search } = new URL(url);
    const first = await there.ask(host, `/${search}`, { headers: { accept: "text/html" } });
    const cookie = first.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
    expect(first.headers.location).toBe(`https://${host}/`);
    expect((await there.ask(host, "/", { headers: { cookie } })).text).toBe("page");
    await there.api("PUT", `/v1/sandboxes/${sandbox.id}/ports/${PORT}`, { isPublic: true });
    for (const bed of [here, there]) expect((await bed.ask(host, "/")).text).toBe("page");
  });

  it("streams uploads and WebSockets through the other node", async () => {
    const [here, there] = beds();
    const sandbox = await here.create();
    const { createServer } = await import("node:http");
    const server = createServer(async (request, response) => {
      const size = (await request.toArray()).reduce((sum, { length }) => sum + length, 0);
      response.end(String(size));
    });
    new WebSocketServer({ server }).on("connection", (socket) => {
      socket.on("message", (data) => socket.send(data));
    });
    await here.serve(sandbox, server);
    const host = `${PORT}-${sandbox.id}.preview.example.com`;
    const headers = { authorization: `Bearer ${here.key}` };
    const upload = await there.ask(host, "/", { method: "POST", headers, body: Buffer.alloc(5_000_000) });
    expect(upload.text).toBe("5000000");
    const socket = new WebSocket(`ws://127.0.0.1:${there.port}/`, { headers: { host, ...headers } });
    const echoed = await new Promise((resolve, reject) => {
      socket.once("open", () => socket.send("through")).once("message", (data) => resolve(String(data)));
      socket.once("error", reject);
    });
    expect(echoed).toBe("through");
    socket.terminate();
  });

  it("follows a sandbox that moves, with its public ports", async () => {
    const [here, there] = beds();
    const sandbox = await here.sandbox((_, response) => response.end("page"));
    const host = `${PORT}-${sandbox.id}.preview.example.com`;
    await here.api("PUT", `/v1/sandboxes/${sandbox.id}/ports/${PORT}`, { isPublic: true });
    await there.api("POST", `/v1/sandboxes/${sandbox.id}/handoff`, {});
    for (const bed of [here, there]) expect((await bed.ask(host, "/")).text).toBe("page");
  });

  it("connects to a port through any node", async () => {
    const [here, there] = beds();
    const sandbox = await here.rawSandbox((socket) => void socket.pipe(socket));
    const client = new Client({ url: there.node.url, apiKey: here.key });
    const connection = await (await client.sandboxes.connect(sandbox.id)).connect(PORT);
    await connection.write(new TextEncoder().encode("via"));
    await connection.end();
    expect(String(Buffer.concat(await Array.fromAsync(connection)))).toBe("via");
    client.close();
  });

  it("believes nobody but nodes about where a request came from", async () => {
    const [here] = beds();
    const sandbox = await here.sandbox((request, response) => response.end(JSON.stringify(request.headers)));
    const claim = Buffer.from(JSON.stringify({ mode: "host", origin: "https://x", forwardedFor: "1.1.1.1" }));
    const headers = { "x-sandpiper-preview": claim.toString("base64url"), "x-sandpiper-node": "forged" };
    expect((await here.askByPath(sandbox, "/", { headers })).status).toBe(401);
    const { "x-sandpiper-preview": lie } = headers;
    const { text } = await here.askByPath(sandbox, "/", { headers: { "x-sandpiper-preview": lie } });
    expect(JSON.parse(text)["x-forwarded-for"]).toBe("127.0.0.1");
  });
});
