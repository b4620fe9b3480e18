import { encodeFrame } from "@sandpiper/protocol";
import { FakeClock, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { ScriptedAgent } from "../testing/scripted-agent.ts";
import type { AgentClient } from "./agent-client.ts";
import { download } from "./download.ts";
import { uploadFile } from "./upload.ts";

const MESSAGES = 10_000;
/** About as many as the test makes, so that the noise names open, ended and unknown calls. */
const CALLS = 600;

/** Small, fast and the same in every run (mulberry32). */
function randomSource(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

const oddValues: readonly unknown[] = [
  null, true, -1, 0, 1, 2, 1.5, 1e308, Number.MAX_SAFE_INTEGER, "", "x", "2.0", "__proto__", [], {}, [[]],
  { __proto__: null }, { call: 1 }, { call: 2, bytes: 3 }, { call: "x" }, { pong: true }, { content: "y" },
  { size: 5 }, { code: -32000, message: "m" }, { code: -32000, message: "m", data: { code: "gone", reason: "r" } },
  "x".repeat(5000), JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
]; // biome-ignore format: a list of values reads best as a block

function randomMessage(random: (limit: number) => number): Uint8Array[] {
  const odd = () => oddValues[random(oddValues.length)];
  const methods = ["stream.data", "stream.credit", "stream.end", "cancel", "ping", "no.such.method"];
  const message: Record<string, unknown> = { jsonrpc: "2.0" };
  if (random(2) === 0) message["method"] = random(8) === 0 ? odd() : methods[random(methods.length)];
  if (random(2) === 0) message["id"] = random(2) === 0 ? random(CALLS) : odd();
  if (random(2) === 0)
    message["params"] = random(4) === 0 ? odd() : { call: random(CALLS), bytes: odd(), offset: odd() };
  if (random(3) === 0) message["result"] = odd();
  if (random(5) === 0) message["error"] = odd();
  if (random(20) === 0) message["jsonrpc"] = odd();
  if (random(20) === 0) message["bytes"] = odd();
  return encodeFrame(message, random(3) === 0 ? new Uint8Array(random(3000)) : undefined);
}

function mutate(bytes: Uint8Array, random: (limit: number) => number): Uint8Array {
  const changed = bytes.slice();
  for (let flips = random(4); flips > 0; flips--) changed[random(changed.length)] = random(256);
  return random(6) === 0 ? changed.subarray(0, random(changed.length + 1)) : changed;
}

/** Ends attachments and lines that the noise left open; they would consume the next frame. */
function endOpenFrames(agent: ScriptedAgent): void {
  const blanks = new Uint8Array(1024 * 1024 + 2).fill(0x20);
  blanks[blanks.length - 1] = 0x0a;
  agent.raw(blanks);
  agent.raw(blanks);
}

/** Calls of every kind that wait while the noise arrives. */
function openCalls(client: AgentClient): void {
  const ignore = () => {};
  client.call("read_file", { path: "x" }).catch(ignore);
  client.call("process.wait", { process: "p" }).catch(ignore);
  uploadFile(client, { path: "x" }, new Uint8Array(100_000)).catch(ignore);
  for (const stream of [
    download(client, "file.read", { path: "x" }),
    download(client, "process.output", { process: "p" }, { journalOffset: 0 }),
  ]) {
    (async () => {
      for await (const chunk of stream) expect(chunk.bytes.length).toBeGreaterThan(0);
    })().catch(ignore);
  }
}

describe("an agent that sends nonsense", () => {
  it(`neither crashes nor hangs the host with ${MESSAGES} messages, and the next call works`, async () => {
    const random = randomSource(20_261_116);
    const clock = new FakeClock();
    let agent = new ScriptedAgent();
    let client = await agent.client({ clock });
    let reopened = 0;
    let answered = 0;
    for (let sent = 0; sent < MESSAGES; sent++) {
      if (client.isClosed) {
        // The agent exceeded its window or sent too much nonsense, so the client closed the channel.
        const { reason } = await client.closed;
        expect(["agent_window_exceeded", "agent_malformed"]).toContain(reason);
        reopened++;
        agent = new ScriptedAgent();
        client = await agent.client({ clock });
      }
      if (sent % 100 === 0) openCalls(client);
      for (const piece of randomMessage(random)) agent.raw(random(2) === 0 ? mutate(piece, random) : piece);
      if (sent % 25 !== 24) continue;
      await settle();
      endOpenFrames(agent);
      // Until the client has worked off what it received.
      clock.run(2000);
      if (client.isClosed) continue;
      await client.ping();
      answered++;
    }
    expect(client.faults.malformedFrames + client.faults.strayMessages).toBeGreaterThan(0);
    expect(reopened).toBeGreaterThan(0);
    expect(answered).toBeGreaterThan(10);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    await clock.advance(60_000);
    endOpenFrames(agent);
    if (!client.isClosed) expect(client.openCalls).toBeLessThan(300);
  });
});
