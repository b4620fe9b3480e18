import { encodeFrame } from "@sandpiper/protocol";
import { settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { watchFiles } from "../files/file-watcher.ts";
import { connectedAgent } from "../testing/scripted-agent.ts";
import { download } from "./download.ts";

const SECONDS = 1;
/** Longer than a flood of 200 lines has to wait. */
const WAIT_MS = 100;
const repeated = (line: string, count: number) => new TextEncoder().encode(line.repeat(count));
const message = (text: object) => Buffer.concat(encodeFrame(text)).toString();

describe("a guest that floods its channel", () => {
  it("is decoded in turns, between which other sandboxes are served", async () => {
    const { agent, client, clock } = await connectedAgent();
    await client.ping();
    const stray = message({ jsonrpc: "2.0", id: 1, result: {} });
    const ready = agent.raw(repeated(stray, 10_000));
    expect(client.faults.strayMessages).toBeLessThan(500);
    expect(ready).toBeInstanceOf(Promise);
    await clock.advance(1000);
    await ready;
    expect(client.faults.strayMessages).toBe(10_000);
  });

  it("gets a fixed amount of work per second, however much it sends", async () => {
    const stray = message({ jsonrpc: "2.0", method: "stream.data", params: { call: 1 } });
    const few = await decodedLines(SECONDS, stray);
    const more = await decodedLines(3 * SECONDS, stray);
    expect(more - few).toBeGreaterThan(50_000 * SECONDS);
    expect(more - few).toBeLessThan(110_000 * SECONDS);
  });

  it("pays for blank lines and for the bytes of long lines, too", async () => {
    const blanks = await decodedLines(SECONDS, "\n");
    expect(blanks).toBeLessThan(80_000 * SECONDS);
    const long = await decodedLines(SECONDS, `${" ".repeat(2560)}\n`);
    expect(long * 8).toBeLessThan(blanks);
  });

  it("has the events of its files read in turns, although thousands fit into one message", async () => {
    const { agent, client, clock } = await connectedAgent();
    agent.on("file.watch", ({ message: request }) => agent.data(request, watchLines(5000), { offset: 0 }));
    const watcher = await watchFiles(client, "/tmp");
    let read = 0;
    const reading = (async () => {
      for await (const _ of watcher) if (++read === 5000) break;
    })();
    await settle();
    expect(read).toBeGreaterThan(0);
    expect(read).toBeLessThan(100);
    // What it may save up for a burst is spent by then.
    await clock.advance(100);
    const saved = read;
    await clock.advance(100);
    expect(read - saved).toBeLessThan(1000);
    await clock.advance(SECONDS * 1000);
    await reading;
  });

  it("loses its channel after repeated messages that do not follow the protocol", async () => {
    for (const line of ["x\n", "{}\n", message({ jsonrpc: "2.0", id: 99, result: {} })]) {
      const { agent, client } = await connectedAgent();
      agent.raw(repeated(line, 90));
      expect(client.isClosed).toBe(false);
      agent.raw(repeated(line, 1000));
      expect(await client.closed).toMatchObject({ reason: "agent_malformed" });
      expect([agent.isClosed, client.faults.malformedFrames]).toEqual([true, 100]);
    }
  });
});

describe("an honest agent", () => {
  it("keeps its channel, however many messages about a canceled call are on their way", async () => {
    const { agent, client, clock } = await connectedAgent();
    const stream = download(client, "process.output", { process: "p" }, { journalOffset: 0 });
    await settle();
    const [request] = agent.sent("process.output");
    await stream.return?.();
    for (let sent = 0; sent < 5000; sent++) agent.data(request ?? {}, new Uint8Array(1), { offset: sent });
    await clock.advance(SECONDS * 1000);
    expect([client.isClosed, client.faults]).toEqual([false, { malformedFrames: 0, strayMessages: 5000 }]);
  });

  it("sends 1 GB/s in frames of 64 KiB without a pause", async () => {
    const { agent, client, clock } = await connectedAgent();
    client.call("process.wait", { process: "p" }).catch(() => {});
    await client.ping();
    const frame = { jsonrpc: "2.0", method: "stream.data", params: { call: 2 } };
    const chunk = Buffer.concat(
      Array(16)
        .fill(encodeFrame(frame, new Uint8Array(65_536)))
        .flat(),
    );
    for (let ms = 0; ms < 2000; ms++) {
      expect(agent.raw(chunk)).toBeUndefined();
      await clock.advance(1);
    }
    expect(client.faults.strayMessages).toBe(32_000);
  });

  it("has its last answer read when its channel ends after a flood", async () => {
    const { agent, client, clock } = await connectedAgent();
    await client.ping();
    agent.on("ping", ({ message: request }) => {
      agent.raw(repeated(message({ jsonrpc: "2.0", id: 1, result: {} }), 1000));
      agent.answer(request, { pong: true });
      agent.hangUp(new Error("the other side has closed the channel"));
    });
    const ping = client.ping();
    await clock.advance(1000);
    await ping;
    expect(client.isClosed).toBe(true);
  });
});

function watchLines(events: number): Uint8Array {
  const lines = [{ kind: "ready", path: "" }, ...Array(events).fill({ kind: "create", path: "a" })];
  return new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

/** How many of these lines are decoded in that time. The agent sends the next ones when it may. */
async function decodedLines(seconds: number, line: string): Promise<number> {
  const { agent, client, clock } = await connectedAgent();
  await client.ping();
  const lines = 200;
  const chunk = repeated(line, lines);
  let sent = 0;
  const untilMs = clock.monotonicMs() + seconds * 1000;
  while (clock.monotonicMs() < untilMs) {
    const ready = agent.raw(chunk);
    sent += lines;
    if (ready !== undefined) await Promise.all([ready, clock.advance(WAIT_MS)]);
  }
  return sent;
}
