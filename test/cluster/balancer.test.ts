import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { ClusterBed } from "./cluster-bed.ts";
import type { ClusterNode } from "./cluster-node.ts";

/** The node that a response's cookie names. */
function assigned(response: Response): string | undefined {
  return /^SANDPIPER_NODE=(node-\d);.* HttpOnly/.exec(response.headers.get("set-cookie") ?? "")?.[1];
}

/** Without a store each node has its own key, so a response other than 401 shows which node sent it. */
function clientOf(node: ClusterNode | undefined, cookie: string): Record<string, string> {
  return { authorization: `Bearer ${node?.apiKey}`, cookie: `SANDPIPER_NODE=${cookie}` };
}

/** Requests a WebSocket; the socket is missing when the node refused. */
async function upgrade(url: string, headers: Record<string, string>): Promise<[IncomingMessage, Socket?]> {
  const nonce = "dGhlIHNhbXBsZSBub25jZQ==";
  const socketHeaders = { upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": nonce };
  const asking = request(url, { headers: { connection: "Upgrade", ...socketHeaders, ...headers } }).end();
  return (await Promise.race([once(asking, "upgrade"), once(asking, "response")])) as [IncomingMessage, Socket?];
}

async function startBed(): Promise<ClusterBed> {
  const bed = await ClusterBed.start();
  await becomes(bed, ["UP", "UP", "UP"]);
  return bed;
}

async function becomes(bed: ClusterBed, states: readonly string[]): Promise<void> {
  await expect.poll(async () => [...(await bed.balancer.servers()).values()]).toEqual(states);
}

describe("three nodes behind HAProxy", () => {
  it("share new clients, and a cookie keeps each client on its node over HTTP and WebSocket", async () => {
    await using bed = await startBed();
    const newcomers = await Promise.all(Array.from({ length: 6 }, () => fetch(`${bed.url}/health`)));
    expect(newcomers.map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect(new Set(newcomers.map(assigned))).toEqual(new Set(["node-1", "node-2", "node-3"]));

    for (const [index, node] of bed.nodes.entries()) {
      const headers = clientOf(node, `node-${index + 1}`);
      for (let round = 0; round < 4; round++) {
        const response = await fetch(`${bed.url}/v1/sandboxes`, { headers });
        expect([response.status, assigned(response)]).toEqual([200, undefined]);
        const [{ statusCode }, socket] = await upgrade(`${bed.url}/v1/socket`, headers);
        expect(statusCode).toBe(101);
        socket?.destroy();
      }
    }
    const misled = await fetch(`${bed.url}/v1/sandboxes`, { headers: clientOf(bed.nodes[0], "node-3") });
    expect(misled.status).toBe(401);
  });

  it("set the cookie in the response to a WebSocket upgrade", async () => {
    await using bed = await startBed();
    for (const node of bed.nodes.slice(1))
      await bed.balancer.command(`set server sandpiper/${bed.nameOf(node)} state maint`);
    const headers = { authorization: `Bearer ${bed.nodes[0].apiKey}` };
    const [response, socket] = await upgrade(`${bed.url}/v1/socket`, headers);
    expect([response.statusCode, response.headers["set-cookie"]]).toEqual([101, [expect.stringMatching(/=node-1;/)]]);
    socket?.destroy();
  });

  it("take over the clients of an unreachable node, which gets its clients back when it recovers", {
    timeout: 60_000,
  }, async () => {
    await using bed = await startBed();
    const [, second] = bed.nodes;
    const headers = clientOf(second, "node-2");
    const [, socket] = await upgrade(`${bed.url}/v1/socket`, headers);
    const ended = once(socket as Socket, "close");
    socket?.resume();

    await bed.cut(second);
    await becomes(bed, ["UP", "DOWN", "UP"]);
    await ended;
    const moved = await fetch(`${bed.url}/health`, { headers });
    expect([moved.status, assigned(moved)]).toEqual([200, expect.stringMatching(/node-[13]/)]);

    await bed.heal(second);
    await becomes(bed, ["UP", "UP", "UP"]);
    expect((await fetch(`${bed.url}/v1/sandboxes`, { headers })).status).toBe(200);
  });

  it("keep existing clients on a drained node and send it no new ones", async () => {
    await using bed = await startBed();
    await bed.balancer.command("set server sandpiper/node-1 state drain");
    await becomes(bed, ["DRAIN", "UP", "UP"]);
    const newcomers = await Promise.all(Array.from({ length: 6 }, () => fetch(`${bed.url}/health`)));
    expect(new Set(newcomers.map(assigned))).toEqual(new Set(["node-2", "node-3"]));
    const headers = clientOf(bed.nodes[0], "node-1");
    expect((await fetch(`${bed.url}/v1/sandboxes`, { headers })).status).toBe(200);
  });
});
