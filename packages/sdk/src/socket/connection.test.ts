import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { Client } from "../client.ts";
import { createMemoryServer } from "../testing/create-memory-server.ts";
import { EXIT, executing, scriptedSandbox } from "../testing/scripted-sandbox.ts";

type Scripted = Awaited<ReturnType<typeof scriptedSandbox>>;

/** After its only command. */
async function idleSandbox(): Promise<Scripted> {
  const { result, ...scripted } = await executing();
  scripted.sockets.last.reply({ type: "end", stream: 0, exit: EXIT, offset: 0 });
  await result;
  scripted.sockets.last.reply({ type: "end", stream: 1, exit: EXIT, offset: 0 });
  return scripted;
}

/** With a command that runs. */
async function busySandbox(): Promise<Scripted> {
  const scripted = await executing();
  scripted.sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
  return scripted;
}

async function cutFor(durationMs: number, { sockets, timing }: Scripted): Promise<void> {
  for (let passedMs = 0; passedMs < durationMs; passedMs += 500) {
    sockets.last.cut();
    await timing.advance(500);
  }
}

describe("a client's connection", () => {
  it("is shared by all sandboxes and opened on demand", async () => {
    const { client, sandbox, sockets } = await scriptedSandbox();
    const other = await client.sandboxes.create();
    expect(sockets.all).toHaveLength(0);
    sandbox.exec("a").catch(() => {});
    other.exec("b").catch(() => {});
    await settle();
    expect(sockets.all).toHaveLength(1);
    sockets.last.accept();
    expect(sockets.last.messages).toMatchObject([{ sandbox: sandbox.id }, { sandbox: other.id }]);
  });

  it("is closed when idle, and opened again on demand", async () => {
    const { sandbox, sockets, timing } = await idleSandbox();
    await timing.advance(999);
    expect(sockets.last.isClosed).toBe(false);
    await timing.advance(1);
    expect(sockets.last.isClosed).toBe(true);
    expect(timing.pending).toBe(0);
    sandbox.exec("b").catch(() => {});
    expect(sockets.all).toHaveLength(2);
  });

  it("is closed with the last sandbox, so that a program can end", async () => {
    const { sandbox, sockets, timing } = await idleSandbox();
    await sandbox.destroy();
    expect(sockets.last.isClosed).toBe(true);
    expect(timing.pending).toBe(0);
  });

  it("reconnects with growing pauses until a message arrives", async () => {
    const { sockets, timing } = await busySandbox();
    const pauses = [];
    for (let attempt = 0; attempt < 8; attempt++) {
      const before = timing.monotonicMs();
      const made = sockets.all.length;
      sockets.last.cut();
      while (sockets.all.length === made) await timing.advance(12.5);
      pauses.push(timing.monotonicMs() - before);
      sockets.last.accept();
    }
    expect(pauses).toEqual([37.5, 75, 150, 300, 600, 1200, 1500, 1500]);
    sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
    sockets.last.cut();
    await timing.advance(38);
    expect(sockets.all).toHaveLength(10);
  });

  it("reconnects immediately when the node asks for it, but not repeatedly", async () => {
    const { sandbox, sockets, timing } = await scriptedSandbox();
    sandbox.exec("a").catch(() => {});
    const pauseAfterRestart = async () => {
      sockets.last.accept();
      sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
      const before = timing.monotonicMs();
      const made = sockets.all.length;
      sockets.last.restart();
      await timing.advance(0);
      while (sockets.all.length === made) await timing.advance(12.5);
      return timing.monotonicMs() - before;
    };
    expect(await pauseAfterRestart()).toBe(0);
    expect(await pauseAfterRestart()).toBe(37.5);
    await timing.advance(1_000);
    expect(await pauseAfterRestart()).toBe(0);
    expect(sockets.last.messages).toEqual([]);
    sockets.last.restart();
    await timing.advance(50);
    expect(sockets.all).toHaveLength(4);
  });

  it("gives up after a minute, or after seconds if it was never connected", async () => {
    const first = await scriptedSandbox();
    const result = first.sandbox.exec("a");
    result.catch(() => {});
    await cutFor(5_000, first);
    expect(await rejection(result)).toMatchObject({ code: "unavailable", reason: "node_unreachable" });
    expect((await rejection(result)).hint).toContain("npm start");

    const second = await executing();
    let isFailed = false;
    second.result.catch(() => {
      isFailed = true;
    });
    await cutFor(59_000, second);
    expect(isFailed).toBe(false);
    await cutFor(4_000, second);
    expect(isFailed).toBe(true);
  });

  it("limits the wait for a connection that does not open", async () => {
    const { sandbox, sockets, timing } = await scriptedSandbox();
    sandbox.exec("a").catch(() => {});
    await timing.advance(10_100);
    expect(sockets.all).toHaveLength(2);
    expect(sockets.all[0]?.isClosed).toBe(true);
  });

  it("is probed when it is silent, and replaced without an answer", async () => {
    const { sockets, timing } = await busySandbox();
    await timing.advance(29_999);
    expect(sockets.last.messages).toHaveLength(1);
    await timing.advance(1);
    expect(sockets.last.open).toMatchObject({ kind: "events", stream: 1 });
    sockets.last.reply({ type: "opened", stream: 1 });
    expect(sockets.last.messages.at(-1)).toEqual({ type: "close", stream: 1 });
    await timing.advance(10_000 + 15_000);
    expect(sockets.last.open).toMatchObject({ kind: "events", stream: 2 });
    await timing.advance(9_999);
    expect(sockets.all).toHaveLength(1);
    await timing.advance(100);
    expect(sockets.all).toHaveLength(2);
    expect(sockets.all[0]?.isClosed).toBe(true);
    sockets.last.accept();
    expect(sockets.last.messages).toMatchObject([
      { kind: "process", stream: 0 },
      { kind: "events", stream: 2 },
    ]);
  });

  it("ignores events of a connection that it has replaced", async () => {
    const { sockets, timing, result } = await executing();
    let isDone = false;
    result.then(() => {
      isDone = true;
    });
    sockets.last.cut();
    sockets.last.reply({ type: "end", stream: 0, exit: EXIT, offset: 0 });
    await timing.advance(10);
    expect(isDone).toBe(false);
  });

  it("has at most a thousand open streams; more wait", async () => {
    const { sandbox, sockets } = await scriptedSandbox();
    for (let count = 0; count < 1001; count++) sandbox.exec(String(count)).catch(() => {});
    sockets.last.accept();
    expect(sockets.last.messages).toHaveLength(1000);
    sockets.last.reply({ type: "end", stream: 5, exit: EXIT, offset: 0 });
    expect(sockets.last.open).toMatchObject({ spawn: { command: "1000" } });
  });

  it("fails everything when the client is closed", async () => {
    const { client, sockets, result } = await executing();
    client.close();
    expect(await rejection(result)).toMatchObject({ code: "canceled", reason: "client_closed" });
    expect(sockets.last.isClosed).toBe(true);
  });

  it("fails immediately when the credential is refused", async () => {
    const { clientOptions } = createMemoryServer();
    const client = new Client({ ...clientOptions, apiKey: "wrong" });
    expect(await rejection(client.events().ready)).toMatchObject({ code: "unauthenticated" });
  });
});
