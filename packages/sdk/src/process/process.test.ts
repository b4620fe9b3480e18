import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { Client } from "../client.ts";
import { decodeText } from "../decode-text.ts";
import { createMemoryServer } from "../testing/create-memory-server.ts";
import { EXIT, scriptedSandbox, text } from "../testing/scripted-sandbox.ts";
import type { StartOptions } from "./open-process.ts";
import { WINDOW_BYTES } from "./process-stream.ts";

async function started(options: StartOptions = {}) {
  const scripted = await scriptedSandbox();
  const { sandbox, sockets } = scripted;
  const starting = sandbox.start("command", options);
  sockets.last.accept();
  sockets.last.reply({ type: "opened", stream: 0, pid: 7 });
  const process = await starting;
  const write = (offset: number, value: string, source: "stdout" | "stderr" = "stdout", stream = 0) =>
    sockets.last.data({ stream, source, offset, bytes: text(value) });
  const exit = { ...EXIT, exitCode: 4 };
  const end = (offset: number, stream = 0) => sockets.last.reply({ type: "end", stream, exit, offset });
  return { ...scripted, process, write, end };
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  return (await Array.fromAsync(decodeText(bytes))).join("");
}

describe("a process", () => {
  it("resolves when the node confirms the start", async () => {
    const { process, sockets } = await started({ stdin: true, pty: { rows: 2, cols: 3 }, journalBytes: 5000 });
    expect(process.pid).toBe(7);
    expect(sockets.last.open).toMatchObject({
      process: process.id,
      spawn: { process: process.id, stdin: true, pty: { rows: 2, cols: 3 }, journalBytes: 5000 },
    });
  });

  it("keeps output for a loop that starts later", async () => {
    const { process, sockets, write, end } = await started();
    write(0, "a");
    write(1, "b", "stderr");
    end(2);
    expect(await Array.fromAsync(process.output)).toEqual([
      { source: "stdout", offset: 0, dropped: 0, bytes: text("a") },
      { source: "stderr", offset: 1, dropped: 0, bytes: text("b") },
    ]);
    expect(await process.wait()).toEqual({ ...EXIT, exitCode: 4 });
    expect(sockets.last.messages).toHaveLength(1);
  });

  it("is read by each loop from the start", async () => {
    const { process, sockets, write, end } = await started();
    const first = textOf(process.stdout);
    const second = textOf(process.stderr);
    await settle();
    expect(sockets.last.open).toMatchObject({ stream: 1, offset: 0 });
    for (const stream of [0, 1]) {
      write(0, "out", "stdout", stream);
      write(3, "err", "stderr", stream);
      end(6, stream);
    }
    expect([await first, await second]).toEqual(["out", "err"]);
  });

  it("joins small waiting chunks, and grants no more credit than its reader consumes", async () => {
    const { process, sockets, write } = await started();
    const half = WINDOW_BYTES / 2;
    for (let at = 0; at < 1000; at++) write(at, "x");
    write(1000, "y".repeat(half - 1000));
    expect(sockets.last.messages.filter(({ type }) => type === "credit")).toEqual([]);
    const loop = process.output[Symbol.asyncIterator]();
    let chunks = 0;
    for (let bytes = 0; bytes < half; chunks++) bytes += (await loop.next()).value.bytes.length;
    expect(chunks).toBeLessThan(100);
    expect(sockets.last.messages.at(-1)).toEqual({ type: "credit", stream: 0, amount: half });
  });

  it("asks for less after a lost connection when much is unread", async () => {
    const { sockets, cut, write } = await started();
    write(0, "x".repeat(1000));
    await cut();
    expect(sockets.last.open).toMatchObject({ offset: 1000, window: WINDOW_BYTES - 1000 });
  });

  it("requests its exit from the node when its output may never be read", async () => {
    const { process, requests, write } = await started();
    const waiting = process.wait();
    waiting.catch(() => {});
    await settle();
    expect(requests).toEqual([]);
    write(0, "x".repeat(WINDOW_BYTES / 2 + 1));
    await settle();
    expect(requests).toEqual([expect.stringMatching(/\/wait$/)]);
  });

  it("ends its loops and closes its streams when it is detached", async () => {
    const { process, sockets } = await started();
    const reading = textOf(process.stdout);
    await settle();
    process.detach();
    expect(await reading).toBe("");
    expect(sockets.last.messages.at(-1)).toEqual({ type: "close", stream: 0 });
    expect(await textOf(process.stdout)).toBe("");
  });

  it("throws the stream's error in its loop", async () => {
    const { process, sockets } = await started();
    const reading = textOf(process.stdout);
    const error = { code: "gone", reason: "sandbox_ended", message: "?", details: {}, requestId: "r" } as const;
    sockets.last.reply({ type: "error", stream: 0, error });
    expect(await rejection(reading)).toMatchObject({ code: "gone" });
  });

  it("sends input in order, at most a window ahead of the process", async () => {
    const { process, sockets } = await started({ stdin: true });
    let isTaken = false;
    const first = process.write(new Uint8Array(1024 * 1024));
    const second = process.write("more").then(() => {
      isTaken = true;
    });
    sockets.last.reply({ type: "opened", stream: 1, offset: 100 });
    const sent = () => sockets.last.input.reduce((sum, { bytes }) => sum + bytes.length, 0);
    expect(sockets.last.input[0]?.offset).toBe(100);
    expect(sent()).toBe(1024 * 1024);
    sockets.last.reply({ type: "ack", stream: 1, offset: 100 + 1024 * 1024 });
    await first;
    expect(sent()).toBe(1024 * 1024 + 4);
    expect(isTaken).toBe(false);
    sockets.last.reply({ type: "ack", stream: 1, offset: 100 + 1024 * 1024 + 4 });
    await second;
    const closed = process.closeStdin();
    expect(sockets.last.messages.at(-1)).toEqual({ type: "finish", stream: 1, offset: 100 + 1024 * 1024 + 4 });
    sockets.last.reply({ type: "end", stream: 1 });
    await closed;
    expect(await rejection(process.write("late"))).toMatchObject({ reason: "stdin_closed" });
  });

  it("is killed when its start is aborted", async () => {
    const { sandbox, sockets, requests } = await scriptedSandbox();
    const abort = new AbortController();
    const starting = sandbox.start("command", { signal: abort.signal });
    sockets.last.accept();
    abort.abort();
    expect(await rejection(starting)).toMatchObject({ code: "canceled" });
    sockets.last.reply({ type: "opened", stream: 0, pid: 7 });
    expect(requests).toEqual([expect.stringMatching(/^DELETE /)]);
  });

  it("stops waiting when the caller aborts", async () => {
    const { process } = await started();
    const abort = new AbortController();
    const waiting = process.wait({ signal: abort.signal });
    abort.abort();
    expect(await rejection(waiting)).toMatchObject({ code: "canceled" });
  });

  it("is killed and forgotten at the end of its scope", async () => {
    const server = createMemoryServer();
    server.onExec(() => Promise.withResolvers<never>().promise);
    const sandbox = await new Client(server.clientOptions).sandboxes.create();
    {
      await using process = await sandbox.start("forever");
      expect(await sandbox.processes()).toMatchObject([{ id: process.id, isRunning: true }]);
    }
    expect(await sandbox.processes()).toEqual([]);
  });
});
