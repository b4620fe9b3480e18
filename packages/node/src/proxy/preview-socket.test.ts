import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { PORT, PreviewBed } from "./testing/preview-bed.ts";

let bed: PreviewBed;
beforeAll(async () => {
  bed = await PreviewBed.start(new MockProvider());
});
afterAll(() => bed[Symbol.asyncDispose]());

/** A sandbox whose server echoes messages; its headers are its first message. */
async function echoSandbox() {
  const sandbox = await bed.create();
  const server = createServer((_, response) => response.writeHead(404).end("no page"));
  const sockets = new WebSocketServer({ server, handleProtocols: (offered) => [...offered][0] ?? false });
  sockets.on("connection", (socket, { headers, url }) => {
    socket.send(JSON.stringify({ headers, url }));
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  await bed.serve(sandbox, server);
  return sandbox;
}

function open(host: string, path: string, headers: object, protocols: string[] = []): WebSocket {
  return new WebSocket(`ws://127.0.0.1:${bed.port}${path}`, protocols, { headers: { host, ...headers } });
}

describe("a WebSocket of a preview", () => {
  it("reaches the server in the sandbox, without the node's credentials", async () => {
    const sandbox = await echoSandbox();
    const host = bed.hostOf(sandbox);
    const headers = {
      authorization: `Bearer ${bed.key}`,
      origin: `http://${host}`,
      cookie: "SANDPIPER_NODE=1; mine=2",
    };
    const socket = open(host, "/live?x", headers, ["chat", `bearer.${bed.key}`]);
    const [first] = await once(socket, "message");
    const seen = JSON.parse(String(first));
    expect(seen).toMatchObject({
      url: "/live?x",
      headers: { host: `localhost:${PORT}`, origin: `http://localhost:${PORT}`, cookie: "mine=2" },
    });
    expect(String(first)).not.toContain(bed.key);
    expect(socket.protocol).toBe("chat");
    const large = Buffer.alloc(3_000_000, 7);
    socket.send(large);
    const [echoed] = await once(socket, "message");
    expect(large.equals(echoed)).toBe(true);
    socket.close(4000, "enough");
    expect(await once(socket, "close")).toEqual([4000, Buffer.from("enough")]);
  });

  it("works below the node's own address, with a link in its URL", async () => {
    const sandbox = await echoSandbox();
    const { url } = await bed.api("POST", `/v1/sandboxes/${sandbox.id}/links`, { port: PORT });
    const path = `/v1/sandboxes/${sandbox.id}/ports/${PORT}/live${new URL(url).search}`;
    const socket = open(`127.0.0.1:${bed.port}`, path, {});
    expect(JSON.parse(String((await once(socket, "message"))[0])).url).toBe("/live");
    socket.terminate();
  });

  it("is refused without a credential, and for another protocol", async () => {
    const sandbox = await echoSandbox();
    const refused = open(bed.hostOf(sandbox), "/", {});
    const [, response] = await once(
      refused.on("error", () => {}),
      "unexpected-response",
    );
    expect(response.statusCode).toBe(401);
    const raw = connect(Number(bed.port), "127.0.0.1");
    const head = ["GET / HTTP/1.1", `Host: ${bed.hostOf(sandbox)}`, "Connection: Upgrade", "Upgrade: h2c"];
    raw.write(`${[...head, `Authorization: Bearer ${bed.key}`].join("\r\n")}\r\n\r\n`);
    expect(String(Buffer.concat(await raw.toArray()))).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("gets the server's own refusal", async () => {
    const sandbox = await bed.sandbox((_, response) => response.end());
    const server = createServer();
    server.on("upgrade", (_, socket) =>
      socket.end("HTTP/1.1 418 Teapot\r\nX-Why: tea\r\nContent-Length: 3\r\n\r\ntea"),
    );
    await bed.serve(sandbox, server);
    const socket = open(bed.hostOf(sandbox), "/", { authorization: `Bearer ${bed.key}` });
    const [, response] = await once(
      socket.on("error", () => {}),
      "unexpected-response",
    );
    expect([response.statusCode, response.headers["x-why"]]).toEqual([418, "tea"]);
    expect(String(Buffer.concat(await response.toArray()))).toBe("tea");
  });

  it("is cut when its link is revoked, and when the node stops", async () => {
    const sandbox = await echoSandbox();
    const { url } = await bed.api("POST", `/v1/sandboxes/${sandbox.id}/links`, { port: PORT });
    const byLink = open(bed.hostOf(sandbox), `/${new URL(url).search}`, {});
    const byKey = open(bed.hostOf(sandbox), "/", { authorization: `Bearer ${bed.key}` });
    await Promise.all([once(byLink, "message"), once(byKey, "message")]);
    await bed.api("DELETE", `/v1/sandboxes/${sandbox.id}/links`);
    await once(byLink, "close");
    expect(byKey.readyState).toBe(WebSocket.OPEN);
    const cut = once(byKey, "close");
    await bed.restart();
    await cut;
  });

  it("keeps the sandbox from being idle while it is open", async () => {
    const sandbox = await echoSandbox();
    const socket = open(bed.hostOf(sandbox), "/", { authorization: `Bearer ${bed.key}` });
    await once(socket, "message");
    const lifetime = { idleTimeoutMs: 300, onExpiry: "pause" };
    await bed.api("PATCH", `/v1/sandboxes/${sandbox.id}`, lifetime);
    const unused = await bed.create(lifetime);
    const stateOf = async ({ id }: { id: string }) => (await bed.api("GET", `/v1/sandboxes/${id}`)).state;
    await expect.poll(() => stateOf(unused), { timeout: 5000 }).toBe("paused");
    expect(await stateOf(sandbox)).toBe("ready");
    socket.terminate();
    await expect.poll(() => stateOf(sandbox), { timeout: 5000 }).toBe("paused");
  });
});

describe("a preview of a sandbox that does not run", () => {
  it("wakes it", async () => {
    const sandbox = await bed.sandbox((_, response) => response.end("awake"));
    await bed.api("POST", `/v1/sandboxes/${sandbox.id}/pause`, {});
    expect(await bed.askAsOwner(sandbox, "/")).toMatchObject({ status: 200, text: "awake" });
    expect((await bed.api("GET", `/v1/sandboxes/${sandbox.id}`)).state).toBe("ready");
  });

  it("is not woken by visitors that may not use it", async () => {
    const sandbox = await bed.sandbox((_, response) => response.end("awake"));
    await bed.api("POST", `/v1/sandboxes/${sandbox.id}/pause`, {});
    expect((await bed.ask(bed.hostOf(sandbox), "/")).status).toBe(401);
    expect((await bed.api("GET", `/v1/sandboxes/${sandbox.id}`)).state).toBe("paused");
  });
});

describe("the failure of a preview", () => {
  it("is a page for browsers and JSON for programs, and lists the ports that listen", async () => {
    const sandbox = await bed.sandbox((_, response) => response.end());
    const headers = { authorization: `Bearer ${bed.key}` };
    const host = bed.hostOf(sandbox, 9999);
    const program = await bed.ask(host, "/", { headers });
    expect(program.status).toBe(502);
    expect(JSON.parse(program.text)).toMatchObject({
      reason: "port_not_listening",
      details: { id: sandbox.id, port: 9999, listening: [7, PORT] },
    });
    const browser = await bed.ask(host, "/", { headers: { ...headers, accept: "text/html,*/*" } });
    expect(browser.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(browser.text).toContain("Nothing listens on this port");
    expect(browser.text).toContain(`it listens on 7, ${PORT}`);
  });

  it("escapes what it shows", async () => {
    const answer = await bed.ask("<script>.preview.localhost", "/v1/sandboxes/<b>/ports/1/", {
      headers: { accept: "text/html" },
    });
    expect(answer.text).not.toContain("<b>");
  });
});
