import { once } from "node:events";
import { type DataFrame, errorBodySchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { untilSettled } from "../testing/until-settled.ts";
import { type SocketNode, startSocketNode } from "./testing/socket-node.ts";
import { isFrame } from "./testing/test-client.ts";

let node: SocketNode;
let live: LiveSandbox;
let token: string;
beforeEach(async () => {
  node = await startSocketNode({ provider: new MockProvider() });
  ({ live, token } = await node.createSandbox());
});
afterEach(() => node[Symbol.asyncDispose]());

const open = (fields: object) => ({
  type: "open",
  stream: 1,
  kind: "process",
  sandbox: live.id,
  process: "p1",
  offset: 0,
  window: 1024 * 1024,
  ...fields,
});
const text = (messages: readonly object[]) =>
  messages
    .filter((message): message is DataFrame => isFrame(message as DataFrame))
    .map(({ bytes }) => Buffer.from(bytes).toString())
    .join("");
const isEnd = (message: object) => "type" in message && message.type === "end";

describe("a process stream", () => {
  it("is answered after its audit entry is written", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.auditing.written = promise;
    const client = await node.connect(open({ spawn: { command: "true" } }));
    await expect.poll(() => node.audit).toMatchObject([{ operation: "startProcess", status: 201 }]);
    let isAnswered = false;
    const answer = client.next().finally(() => (isAnswered = true));
    client.webSocket.ping();
    await once(client.webSocket, "pong");
    expect(isAnswered).toBe(false);
    resolve();
    expect(await answer).toMatchObject({ type: "opened" });
  });

  it("starts the process, sends its output with offsets, and reports its exit", async () => {
    const client = await node.connect(open({ spawn: { command: "echo one; echo two >&2; exit 3" } }));
    const [opened, first, second, end] = await client.take(4);
    expect(opened).toEqual({ type: "opened", stream: 1, pid: expect.any(Number) });
    expect(first).toMatchObject({ stream: 1, source: "stdout", offset: 0 });
    expect(second).toMatchObject({ stream: 1, source: "stderr", offset: 4 });
    expect(text([first as object, second as object])).toBe("one\ntwo\n");
    const exit = { exitCode: 3, signal: null, timedOut: false, outOfMemory: false, durationMs: expect.any(Number) };
    expect(end).toEqual({ type: "end", stream: 1, exit, offset: 8 });
  });

  it("attaches to a process that already exists, at the requested offset", async () => {
    for (const [offset, expected] of [
      [0, "hello\n"],
      [0, "hello\n"],
      [2, "llo\n"],
      [6, ""],
    ] as const) {
      const client = await node.connect(open({ offset, spawn: { command: "echo hello" } }));
      expect(text(await client.until(isEnd))).toBe(expected);
    }
    expect(await live.processes()).toHaveLength(1);
  });

  it("never starts a process for a client that has already received output of it", async () => {
    const client = await node.connect(open({ offset: 5, spawn: { command: "echo hello" } }));
    const error = { reason: "no_such_process", message: expect.stringContaining("has no process p1") };
    expect(await client.next()).toMatchObject({ type: "error", stream: 1, error });
    expect(await live.processes()).toEqual([]);
  });

  it("sends no more than its credit, and continues when it gets more", async () => {
    const client = await node.connect(open({ window: 3, spawn: { command: "echo hello; sleep 60" } }));
    const [, first] = await client.take(2);
    expect(text([first as object])).toBe("hel");
    await client.send({ type: "credit", stream: 1, amount: 1 });
    expect(await client.next()).toMatchObject({ offset: 3, bytes: Buffer.from("l") });
    await client.send({ type: "credit", stream: 1, amount: 100 });
    expect(text([await client.next()])).toBe("o\n");
  });

  it("forgets an ended process on request, but not a running one", async () => {
    const client = await node.connect(open({ spawn: { command: "true" } }));
    await client.until(isEnd);
    await client.send(open({ stream: 2, process: "p2", spawn: { command: "sleep 100" } }));
    await client.next();
    const forget = { type: "open", kind: "forget", sandbox: live.id };
    await client.send({ ...forget, stream: 3, process: "p2" });
    expect(await client.next()).toMatchObject({ type: "error", stream: 3 });
    await client.send({ ...forget, stream: 4, process: "p1" });
    expect(await client.next()).toEqual({ type: "end", stream: 4 });
    expect((await live.processes()).map(({ id }) => id)).toEqual(["p2"]);
  });

  it("does not start a forgotten process again when a delayed copy of its start arrives", async () => {
    const start = { spawn: { command: "echo once >> /tmp/times" } };
    const client = await node.connect(open(start));
    await client.until(isEnd);
    await client.send({ type: "open", kind: "forget", sandbox: live.id, stream: 2, process: "p1" });
    expect(await client.next()).toEqual({ type: "end", stream: 2 });
    const delayed = await node.connect(open(start));
    expect(await delayed.next()).toMatchObject({ type: "error", error: { reason: "no_such_process" } });
    expect(await live.processes()).toEqual([]);
  });

  it("does not start a process for a client that left before its sandbox was ready", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.auditing.written = promise;
    const client = await node.connect(open({ spawn: { command: "sleep 60" } }));
    await expect.poll(() => node.audit).toMatchObject([{ operation: "startProcess" }]);
    client.terminate();
    await client.closed;
    const other = await node.connect(open({ process: "p2", spawn: { command: "true" } }));
    other.webSocket.ping();
    await once(other.webSocket, "pong");
    resolve();
    await other.until(isEnd);
    expect((await live.processes()).map(({ id }) => id)).toEqual(["p2"]);
  });

  it("reports the exit again to the next client until the process is forgotten", async () => {
    const client = await node.connect(open({ spawn: { command: "echo hello" } }));
    await client.until(isEnd);
    client.terminate();
    const next = await node.connect(open({ offset: 6, spawn: { command: "echo hello" } }));
    expect((await next.until(isEnd)).at(-1)).toMatchObject({ exit: { exitCode: 0 }, offset: 6 });
  });

  it("leaves the process running when the stream is closed", async () => {
    const client = await node.connect(open({ spawn: { command: "sleep 60" } }));
    await client.next();
    await client.send({ type: "close", stream: 1 });
    await client.send(open({ stream: 2, process: "p2", spawn: { command: "true" } }));
    await client.until(isEnd);
    expect((await live.process("p1")).isRunning).toBe(true);
  });

  it("carries many streams on one connection, each at its own pace", async () => {
    const client = node.client("/v1/socket");
    await live.files.write("/big", new Uint8Array(300_000));
    // The first stream gets a credit of one byte.
    await client.send(open({ stream: 100, process: "slow", window: 1, spawn: { command: "cat /big" } }));
    for (let n = 0; n < 50; n++) {
      await client.send(open({ stream: n, process: `fast-${n}`, spawn: { command: `echo ${n}; cat /big` } }));
    }
    const bytes = new Map<number, number>();
    for (let ended = 0; ended < 50; ) {
      const message = await client.next();
      if (isFrame(message)) bytes.set(message.stream, (bytes.get(message.stream) ?? 0) + message.bytes.length);
      else if (isEnd(message)) ended++;
    }
    expect(bytes.get(100)).toBe(1);
    expect(bytes.get(7)).toBe(300_002);
  });

  it("fails with the sandbox's error when the sandbox is destroyed", async () => {
    const client = await node.connect(open({ spawn: { command: "sleep 60" } }));
    await client.next();
    await node.sandboxes.remove(node.owner, live.id);
    const error = await client.next();
    expect(error).toMatchObject({ type: "error", stream: 1, error: { code: "gone", reason: "sandbox_destroyed" } });
    errorBodySchema.parse((error as Record<string, unknown>)["error"]);
  });

  it("opens only for clients that may use the sandbox", async () => {
    const other = await node.connect(open({ spawn: { command: "echo hello" } }), {
      credential: node.makeKey({ tenant: "other" }).key,
    });
    expect(await other.next()).toMatchObject({ type: "error", error: { code: "not_found" } });
    const reader = await node.connect(open({ spawn: { command: "echo hello" } }), {
      credential: node.makeKey({ scopes: ["read"] }).key,
    });
    expect(await reader.next()).toMatchObject({ type: "error", error: { code: "permission_denied" } });
    expect(await live.processes()).toEqual([]);
    const denied = { operation: "startProcess", sandboxId: live.id };
    expect(node.audit).toMatchObject([
      { ...denied, status: 404, tenant: "other" },
      { ...denied, status: 403 },
    ]);
    await live.start({ process: "p0", command: "echo hello" });
    await reader.send(open({ stream: 2, process: "p0" }));
    expect(text(await reader.until(isEnd))).toBe("hello\n");
    await reader.send({ type: "open", kind: "forget", stream: 3, sandbox: live.id, process: "p0" });
    expect(await reader.next()).toMatchObject({ type: "error", stream: 3, error: { code: "permission_denied" } });
    const holder = await node.connect(open({ spawn: { command: "echo hello" } }), { credential: token });
    expect(text(await holder.until(isEnd))).toBe("hello\n");
    expect(node.audit.at(-1)).toMatchObject({ ...denied, status: 201, actor: `sandbox:${live.id}` });
  });
});

describe("a client that reconnects often", () => {
  it("gets every byte of a long output exactly once", async () => {
    const lines = Array.from({ length: 60_000 }, (_, n) => `${n}\n`).join("");
    await live.files.write("/lines", lines);
    let output = Buffer.alloc(0);
    let connections = 0;
    for (let isDone = false; !isDone; ) {
      const client = node.client("/v1/socket");
      connections++;
      await client.send(open({ offset: output.length, window: 64 * 1024, spawn: { command: "cat /lines" } }));
      const most = output.length + 10_000 + connections * 700;
      while (output.length < most && !isDone) {
        const message = await client.next();
        if (isFrame(message)) {
          expect(message.offset).toBe(output.length);
          output = Buffer.concat([output, message.bytes]);
          await client.send({ type: "credit", stream: 1, amount: message.bytes.length });
        } else isDone = isEnd(message);
      }
      client.terminate();
    }
    expect(output.toString() === lines).toBe(true);
    expect(connections).toBeGreaterThan(5);
  });
});

describe("a client that does not read", () => {
  it("costs a bounded amount of memory, and does not delay other clients", async () => {
    const stalled = node.client("/v1/socket");
    await stalled.opened();
    stalled.webSocket.pause();
    const streams = 8;
    for (let n = 0; n < streams; n++) {
      const spawn = { command: "head -c 20000000 /dev/zero", journalBytes: 1024 * 1024 };
      await stalled.send(open({ stream: n, process: `flood-${n}`, window: 64 * 1024 * 1024, spawn }));
    }
    const produced = async () => (await live.processes()).reduce((sum, { endOffset }) => sum + endOffset, 0);
    await expect.poll(produced).toBeGreaterThan(0);
    await untilSettled(produced);
    // The connection's buffers, and for each stream its journal and the data in transit to the node.
    expect(await produced()).toBeLessThan(64 * 1024 * 1024);
    const other = await node.connect(open({ stream: 1, process: "other", spawn: { command: "echo hello" } }));
    expect(text(await other.until(isEnd))).toBe("hello\n");
    stalled.webSocket.resume();
    const ends = await stalled.until(
      (
        (left) => (message: object) =>
          isEnd(message) && --left === 0
      )(streams),
    );
    const received = ends.reduce((sum, message) => sum + (isFrame(message) ? message.bytes.length : 0), 0);
    expect(received).toBe(streams * 20_000_000);
  });
});
