import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { connectedAgent } from "../testing/scripted-agent.ts";
import { download } from "./download.ts";
import type { InboundStream } from "./inbound-stream.ts";

const WINDOW = 1024 * 1024;
const KIB = new Uint8Array(1024).fill(7);

async function openRead() {
  const { clock, agent, client } = await connectedAgent();
  const stream = download(client, "file.read", { path: "x" }, { endOffset: (result) => result.size });
  await settle();
  const request = agent.sent("file.read")[0] ?? {};
  return { clock, agent, client, stream, request };
}

async function take(stream: InboundStream, bytes: number): Promise<number> {
  let taken = 0;
  while (taken < bytes) taken += (await stream.next()).value?.bytes.length ?? 0;
  return taken;
}

describe("a download", () => {
  it("grants one window, and more when the reader has consumed half of it", async () => {
    const { agent, stream, request } = await openRead();
    expect(request).toMatchObject({ params: { path: "x", window: WINDOW } });
    for (let sent = 0; sent < 1024; sent++) agent.data(request, KIB);
    await settle();
    expect(agent.sent("stream.credit")).toEqual([]);
    const taken = await take(stream, WINDOW / 4);
    expect(taken).toBeLessThan(WINDOW / 2);
    await settle();
    expect(agent.sent("stream.credit")).toEqual([]);
    const returned = taken + (await take(stream, WINDOW / 2 - taken));
    await settle();
    expect(agent.sent("stream.credit")).toMatchObject([{ params: { call: request["id"], bytes: returned } }]);
  });

  it("never holds more than its window however long the stream is", async () => {
    const { agent, stream, request } = await openRead();
    const chunk = new Uint8Array(64 * 1024);
    let credit = WINDOW;
    let sent = 0;
    let taken = 0;
    agent.on("stream.credit", ({ message }) => {
      credit += (message["params"] as { bytes: number }).bytes;
    });
    const total = 64 * WINDOW;
    while (taken < total) {
      while (credit >= chunk.length && sent < total) {
        agent.data(request, chunk);
        credit -= chunk.length;
        sent += chunk.length;
      }
      expect(sent - taken).toBeLessThanOrEqual(WINDOW);
      taken += await take(stream, WINDOW / 2);
      await settle();
    }
    agent.answer(request, { size: total });
    expect((await stream.next()).done).toBe(true);
    expect(taken).toBe(total);
  });

  it("closes the channel of an agent that exceeds its credit", async () => {
    const { agent, client, stream, request } = await openRead();
    for (let sent = 0; sent < 1024; sent++) agent.data(request, KIB);
    expect(agent.isClosed).toBe(false);
    agent.data(request, Uint8Array.of(1));
    expect(agent.isClosed).toBe(true);
    expect(await client.closed).toMatchObject({ reason: "agent_window_exceeded" });
    await take(stream, WINDOW);
    expect(await rejection(stream.next())).toMatchObject({ code: "unavailable", reason: "agent_window_exceeded" });
  });

  it("keeps no memory for empty messages", async () => {
    const { agent, clock, stream, request } = await openRead();
    for (let sent = 0; sent < 10_000; sent++) agent.data(request, new Uint8Array(0));
    agent.data(request, KIB);
    agent.answer(request, { size: 1024 });
    await clock.advance(5000);
    expect((await stream.next()).value?.bytes.length).toBe(1024);
    expect((await stream.next()).done).toBe(true);
  });

  it("cancels the call when its reader leaves early, and drops later bytes", async () => {
    const { agent, client, stream, request } = await openRead();
    agent.data(request, KIB);
    for await (const { bytes } of stream) {
      expect(bytes.length).toBe(1024);
      break;
    }
    await settle();
    expect(agent.sent("cancel")).toMatchObject([{ params: { call: request["id"] } }]);
    for (let sent = 0; sent < 5000; sent++) agent.data(request, KIB);
    expect(agent.isClosed).toBe(false);
    await client.ping();
    expect(client.openCalls).toBe(0);
  });

  it("delivers all bytes before it reports a failure", async () => {
    const { agent, stream, request } = await openRead();
    agent.data(request, KIB);
    agent.fail(request, { code: "data_loss", reason: "io" });
    expect((await stream.next()).value?.bytes.length).toBe(1024);
    expect(await rejection(stream.next())).toMatchObject({ code: "data_loss", reason: "io" });
  });

  it("notices when the last bytes did not arrive", async () => {
    const { agent, stream, request } = await openRead();
    agent.data(request, KIB);
    agent.raw(
      new TextEncoder().encode('{"jsonrpc":"2.0","method":"stream.data","params":{"call":2},"bytes":9}\ntorn\n'),
    );
    agent.raw(new Uint8Array(9).fill(0x20));
    agent.raw(new TextEncoder().encode("\n"));
    agent.answer(request, { size: 1033 });
    await stream.next();
    expect(await rejection(stream.next())).toMatchObject({ code: "data_loss", reason: "stream_cut" });
  });

  it("fails when the agent is silent for too long", async () => {
    const { clock, agent, stream, request } = await openRead();
    agent.data(request, KIB);
    await clock.advance(60_000);
    expect((await stream.next()).value?.bytes.length).toBe(1024);
    const waiting = stream.next();
    await clock.advance(29_999);
    agent.data(request, KIB);
    expect((await waiting).value?.bytes.length).toBe(1024);
    const silent = rejection(stream.next());
    await clock.advance(30_000);
    expect(await silent).toMatchObject({ code: "deadline_exceeded", reason: "rpc_timeout" });
    await settle();
    expect(agent.sent("cancel")).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it("has one reader", async () => {
    const { stream } = await openRead();
    stream.next();
    expect(await rejection(stream.next())).toMatchObject({ reason: "stream_already_read" });
  });
});

describe("a journal's stream", () => {
  async function openOutput(offset: number) {
    const { agent, client } = await connectedAgent();
    const stream = download(client, "process.output", { process: "p", offset }, { journalOffset: offset });
    await settle();
    return { agent, client, stream, request: agent.sent("process.output")[0] ?? {} };
  }

  it("reports dropped bytes", async () => {
    const { agent, stream, request } = await openOutput(10);
    agent.data(request, KIB, { offset: 50, source: "stderr", dropped: 40 });
    expect((await stream.next()).value).toMatchObject({ offset: 50, source: "stderr", dropped: 40 });
  });

  it.each([
    [{ offset: 11, source: "stdout" }],
    [{ offset: 9, source: "stdout", dropped: 1 }],
    [{ source: "stdout" }],
    [{ offset: "10", source: "stdout" }],
  ])("does not pass on bytes out of order: %j", async (fields) => {
    const { agent, client, stream, request } = await openOutput(10);
    agent.data(request, KIB, fields);
    expect(await rejection(stream.next())).toMatchObject({ code: "data_loss", reason: "stream_gap" });
    await client.ping();
    expect(agent.sent("cancel")).toHaveLength(1);
  });
});
