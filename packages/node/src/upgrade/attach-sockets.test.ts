import { once } from "node:events";
import { connect } from "node:net";
import { FakeClock } from "@sandpiper/core/testing";
import { errorBodySchema, SOCKET_PROTOCOL } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SocketNode, startSocketNode } from "../socket/testing/socket-node.ts";

let node: SocketNode;
let clock: FakeClock;
beforeEach(async () => {
  clock = new FakeClock();
  node = await startSocketNode({ provider: new MockProvider(), clock, corsOrigins: ["https://console.example.com"] });
});
afterEach(() => node[Symbol.asyncDispose]());

describe.each(["/v1/socket", "/create", "/attach/00000000-0000-4000-8000-000000000000"])("WS %s", (path) => {
  it("answers 401 with the usual error body without a valid credential, before it does anything", async () => {
    const revoked = node.makeKey();
    node.keys.revoke(revoked.id);
    for (const credential of [undefined, "spk_00000000_wrong", "spt_x", revoked.key]) {
      const { status, body } = await node.client(path, { credential }).refused;
      expect([status, errorBodySchema.parse(body).code]).toEqual([401, "unauthenticated"]);
    }
    expect(node.audit).toHaveLength(4);
    expect(node.audit).toContainEqual(expect.objectContaining({ actor: null, status: 401 }));
    const bad = await node.client(path, { protocols: ["sandpiper.v1", "bearer.spk_00000000_wrong"] }).refused;
    expect(bad.status).toBe(401);
    expect(node.records.live()).toEqual([]);
  });

  it("accepts no credential in the query", async () => {
    const { status } = await node.client(`${path}?token=${node.ownerKey}`, {}).refused;
    expect(status).toBe(401);
  });

  it("accepts a browser's credential in its subprotocols", async () => {
    const client = node.client(path, { protocols: [SOCKET_PROTOCOL, `bearer.${node.ownerKey}`] });
    await client.opened();
    expect(client.webSocket.protocol).toBe(SOCKET_PROTOCOL);
    const bare = node.client(path, { protocols: [`bearer.${node.ownerKey}`] });
    await bare.opened();
  });

  it("refuses web pages of other origins unless the configuration allows them", async () => {
    const from = (origin: string) => node.client(path, { credential: node.ownerKey, headers: { origin } });
    const { status, body } = await from("https://evil.example.com").refused;
    expect([status, body["reason"]]).toEqual([403, "origin_not_allowed"]);
    expect((await from("null").refused).status).toBe(403);
    await from("https://console.example.com").opened();
    await from(`http://127.0.0.1:${node.port}`).opened();
  });

  it("refuses clients while the node is stopping", async () => {
    node.beginStopping();
    expect(await node.client(path).refused).toMatchObject({ status: 503, body: { reason: "node_stopping" } });
  });
});

describe("a WebSocket of the node", () => {
  it("answers 404 at any other path", async () => {
    for (const path of ["/", "/v1/sockets", "/attach/", "/attach/a/b", "/create/x"]) {
      const { status, body } = await node.client(path).refused;
      expect([status, errorBodySchema.parse(body).reason]).toEqual([404, "no_such_route"]);
    }
  });

  it("creates no sandbox for a read-only key or a sandbox's token, and attaches no read-only key", async () => {
    const { resource, token } = await node.createSandbox();
    for (const credential of [node.makeKey({ scopes: ["read"] }).key, token]) {
      expect((await node.client("/create", { credential }).refused).status).toBe(403);
    }
    expect(node.records.live()).toHaveLength(1);
    const credential = node.makeKey({ scopes: ["read"] }).key;
    expect((await node.client(`/attach/${resource.id}`, { credential }).refused).status).toBe(403);
  });

  it("answers an invalid handshake with the usual error body", async () => {
    const socket = connect(node.port, "127.0.0.1");
    const head = ["GET /v1/socket HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade"];
    const more = ["Sec-WebSocket-Version: 99", `Authorization: Bearer ${node.ownerKey}`];
    socket.write(`${[...head, ...more].join("\r\n")}\r\n\r\n`);
    const answer = Buffer.concat(await socket.toArray()).toString();
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ reason: "malformed_request" });
  });

  it("survives a client that resets the connection during the handshake", async () => {
    const socket = connect(node.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(
      "GET /create HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    socket.resetAndDestroy();
    await node.client("/v1/socket").opened();
  });

  it("is closed with 1001 when the node stops", async () => {
    const client = node.client("/v1/socket");
    await client.opened();
    await node.sockets.close();
    expect(await client.closed).toEqual({ code: 1001, reason: "the node is stopping" });
  });

  it("is closed when its client stops answering pings", async () => {
    const silent = node.client("/v1/socket");
    const lively = node.client("/v1/socket");
    await Promise.all([silent.opened(), lively.opened()]);
    const pinged = once(lively.webSocket, "ping");
    silent.webSocket.pause();
    await clock.advance(20_000);
    await pinged;
    // The pong of the lively client must arrive before the next heartbeat.
    await lively.send({ type: "close", stream: 0 });
    await roundTrip(lively);
    await clock.advance(20_000);
    silent.webSocket.resume();
    expect((await silent.closed).code).toBe(1006);
    await roundTrip(lively);
  });

  it("is closed soon after its key is revoked", async () => {
    const key = node.makeKey();
    const client = node.client("/v1/socket", { credential: key.key });
    await client.opened();
    node.keys.revoke(key.id);
    await clock.advance(20_000);
    expect(await client.closed).toEqual({ code: 1008, reason: "bad_credential" });
  });
});

async function roundTrip(client: ReturnType<SocketNode["client"]>): Promise<void> {
  client.webSocket.ping();
  await once(client.webSocket, "pong");
}
