import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { connectedAgent } from "../testing/scripted-agent.ts";
import { dial } from "./tunnel.ts";

const text = (value: string) => new TextEncoder().encode(value);

async function dialed() {
  const { clock, agent, client } = await connectedAgent();
  const dialing = dial(client, { port: 80 });
  await settle();
  return { clock, agent, client, dialing, request: agent.sent("port.dial")[0] ?? {} };
}

describe("a tunnel", () => {
  it("opens with the agent's first credit, and each direction ends separately", async () => {
    const { agent, dialing, request } = await dialed();
    expect(request).toMatchObject({ params: { port: 80 } });
    agent.credit(request, 2);
    const tunnel = await dialing;
    agent.data(request, text("hello"));
    agent.say({ jsonrpc: "2.0", method: "stream.end", params: { call: request["id"] } });
    expect(await Array.fromAsync(tunnel.readable)).toEqual([text("hello")]);
    const writing = Promise.all([tunnel.write(text("one ")), tunnel.write(text("two")), tunnel.end()]);
    for (let granted = 0; granted < 5; granted++) {
      await settle();
      agent.credit(request, 1);
    }
    await writing;
    await settle();
    const sent = agent.received.flatMap(({ attachment }) => (attachment === undefined ? [] : [...attachment]));
    expect(new TextDecoder().decode(Uint8Array.from(sent))).toBe("one two");
    expect(agent.sent("stream.end")).toHaveLength(1);
    agent.answer(request, { sent: 5, received: 7 });
    await tunnel.closed;
    expect(await rejection(tunnel.write(text("more")))).toMatchObject({ reason: "stream_closed" });
  });

  it("reports why the connection failed", async () => {
    const { agent, dialing, request } = await dialed();
    agent.fail(request, { code: "unavailable", reason: "connection_refused" });
    expect(await rejection(dialing)).toMatchObject({ code: "unavailable", reason: "connection_refused" });
  });

  it("limits the wait for the connection", async () => {
    const { clock, dialing } = await dialed();
    const waiting = rejection(dialing);
    await clock.advance(30_000);
    expect(await waiting).toMatchObject({ code: "deadline_exceeded" });
  });

  it("ends on both sides when it is closed", async () => {
    const { agent, dialing, request } = await dialed();
    agent.credit(request, 1);
    const tunnel = await dialing;
    const writing = rejection(tunnel.write(text("more than the credit")));
    tunnel.close();
    expect(await writing).toMatchObject({ code: "canceled" });
    expect(await rejection(tunnel.closed)).toMatchObject({ reason: "tunnel_closed" });
    await settle();
    expect(agent.sent("cancel")).toHaveLength(1);
  });

  it("lends its memory on request: the piece after the next one reuses it", async () => {
    const { agent, client } = await connectedAgent();
    const dialing = dial(client, { port: 80 }, { lendsMemory: true });
    await settle();
    const request = agent.sent("port.dial")[0] ?? {};
    agent.credit(request, 1);
    const reader = (await dialing).readable[Symbol.asyncIterator]();
    const buffers = new Set<ArrayBufferLike>();
    for (let piece = 0; piece < 20; piece++) {
      agent.data(request, new Uint8Array(64 * 1024).fill(piece));
      const { value } = await reader.next();
      expect(value?.[1000]).toBe(piece);
      buffers.add(value?.buffer as ArrayBufferLike);
    }
    expect(buffers.size).toBeLessThanOrEqual(5);
  });
});
