import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { MessageSocket } from "./message-socket.ts";
import { startSocketNode } from "./testing/socket-node.ts";

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Both ends of a connection. */
async function connect(): Promise<{ readonly socket: MessageSocket; readonly client: WebSocket }> {
  const server = createServer();
  const acceptor = new WebSocketServer({ noServer: true });
  const accepted = new Promise<MessageSocket>((resolve) => {
    server.on("upgrade", (request, raw: Duplex, head) =>
      acceptor.handleUpgrade(request, raw, head, (webSocket) => resolve(new MessageSocket(webSocket, raw))),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.on("error", () => {});
  cleanUps.push(
    () => server.close(),
    () => client.terminate(),
  );
  return { socket: await accepted, client };
}

const MEBIBYTE = 1024 * 1024;

describe("a message socket", () => {
  it("buffers a few megabytes for a client that does not read, and makes further senders wait", async () => {
    const { socket, client } = await connect();
    client.pause();
    let made = 0;
    const deliveries = Array.from({ length: 40 }, () =>
      socket.deliver(() => {
        made++;
        return new Uint8Array(MEBIBYTE);
      }),
    );
    expect(socket.bufferedBytes).toBeLessThan(6 * MEBIBYTE);
    expect(made).toBeLessThan(40);
    let received = 0;
    client.on("message", (data: Buffer) => {
      received += data.length;
    });
    client.resume();
    await Promise.all(deliveries);
    await expect.poll(() => received).toBe(40 * MEBIBYTE);
  });

  it("releases waiting senders without a send when the connection is lost", async () => {
    const { socket, client } = await connect();
    client.pause();
    let made = 0;
    const make = () => {
      made++;
      return new Uint8Array(MEBIBYTE);
    };
    const deliveries = Array.from({ length: 40 }, () => socket.deliver(make));
    client.terminate();
    await Promise.all(deliveries);
    expect(made).toBeLessThan(40);
    expect(await socket.send({ late: true })).toBe(false);
  });

  it("counts messages as received only after a pong to a later ping", async () => {
    const { socket, client } = await connect();
    const pings: Buffer[] = [];
    client.pong = () => {};
    client.on("ping", (data) => pings.push(data));
    let isReceived = false;
    socket.beat();
    socket.whenReceived(() => {
      isReceived = true;
    });
    await expect.poll(() => pings.length).toBe(2);
    WebSocket.prototype.pong.call(client, pings[0]);
    client.send("a message after it");
    await new Promise<void>((resolve) => {
      socket.onMessage(() => resolve());
    });
    expect(isReceived).toBe(false);
    WebSocket.prototype.pong.call(client, pings[1]);
    await expect.poll(() => isReceived).toBe(true);
  });

  it("treats a slow reader as alive, and a client that neither reads nor answers as gone", async () => {
    const { socket, client } = await connect();
    client.pong = () => {};
    client.pause();
    const fill = () => Array.from({ length: 20 }, () => socket.deliver(() => new Uint8Array(MEBIBYTE)));
    fill();
    expect(socket.beat()).toBe(true);
    client.once("message", () => client.pause());
    let received = 0;
    client.on("message", (data: Buffer) => {
      received += data.length;
    });
    client.resume();
    await expect.poll(() => received > 0 && socket.bufferedBytes > 0).toBe(true);
    client.pause();
    expect(socket.beat()).toBe(true);
    expect(socket.beat()).toBe(false);
  });
});

describe("a client that sends requests without reading the answers", () => {
  it("is paused, and gets all its answers when it reads", async () => {
    const node = await startSocketNode({ provider: new MockProvider() });
    cleanUps.push(() => node[Symbol.asyncDispose]());
    const client = node.client("/v1/socket");
    await client.opened();
    client.webSocket.pause();
    const requests = 60_000;
    const open = {
      type: "open",
      kind: "process",
      sandbox: "00000000-0000-4000-8000-000000000000",
      process: "p",
      offset: 0,
      window: 1,
      spawn: { command: "x".repeat(1000) },
    };
    for (let stream = 0; stream < requests; stream++) client.webSocket.send(JSON.stringify({ ...open, stream }));
    let before = -1;
    await expect
      .poll(
        () => {
          const isStill = client.webSocket.bufferedAmount === before;
          before = client.webSocket.bufferedAmount;
          return isStill;
        },
        { interval: 500, timeout: 20_000 },
      )
      .toBe(true);
    expect(client.webSocket.bufferedAmount).toBeGreaterThan(0);
    client.webSocket.resume();
    expect(await client.take(requests)).toHaveLength(requests);
  }, 60_000);
});
