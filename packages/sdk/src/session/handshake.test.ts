import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { Session } from "./session.ts";

const ID = "11111111-2222-4333-8444-555555555555";

/** A load balancer that sets a new affinity cookie with each handshake. */
async function startBalancer() {
  const cookies: (string | undefined)[] = [];
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  sockets.on("headers", (headers, { headers: asked }) => {
    cookies.push(asked.cookie);
    headers.push(`Set-Cookie: NODE=node-${cookies.length}; path=/`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.close();
  });
  const next = async (): Promise<WebSocket> => (await once(sockets, "connection"))[0];
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cookies, next };
}

const say = (socket: WebSocket, event: object) => socket.send(JSON.stringify(event));
const RUNNING = { event: "status_update", status: "SANDBOX_RUNNING" };

it("sends the cookie of the last handshake with the next connection", async () => {
  const balancer = await startBalancer();
  const accepted = balancer.next();
  const creating = Session.create({ url: balancer.url, apiKey: "spk_key" });
  let node = await accepted;
  say(node, { event: "sandbox_id", sandbox_id: ID, token: "spt_token" });
  say(node, RUNNING);
  const session = await creating;
  for (let times = 0; times < 2; times++) {
    const again = balancer.next();
    node.terminate();
    node = await again;
    say(node, RUNNING);
    await expect.poll(() => session.isAttached).toBe(true);
  }
  expect(balancer.cookies).toEqual([undefined, "NODE=node-1", "NODE=node-2"]);
  await session.close();
});

it("fails with the error of a refused handshake", async () => {
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    const body = JSON.stringify({
      code: "permission_denied",
      reason: "scope",
      message: "no",
      details: {},
      requestId: "r",
    });
    socket.end(`HTTP/1.1 403 Forbidden\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await expect(Session.create({ url, apiKey: "spk_key" })).rejects.toMatchObject({ code: "permission_denied" });
});
