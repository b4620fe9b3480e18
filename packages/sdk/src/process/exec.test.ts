import type { ExecOptions, ProcessExitBody } from "@sandpiper/protocol";
import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { EXIT, executing, scriptedSandbox, text } from "../testing/scripted-sandbox.ts";
import { WINDOW_BYTES } from "./process-stream.ts";

async function started(options: ExecOptions = {}) {
  const scripted = await executing(options);
  const { sockets } = scripted;
  const write = (offset: number, bytes: Uint8Array, source: "stdout" | "stderr" = "stdout") =>
    sockets.last.data({ stream: 0, source, offset, bytes });
  const opened = () => sockets.last.reply({ type: "opened", stream: 0, pid: 7 });
  const end = (offset: number, exit: Partial<ProcessExitBody> = {}) =>
    sockets.last.reply({ type: "end", stream: 0, exit: { ...EXIT, ...exit }, offset });
  return { ...scripted, write, opened, end };
}

describe("exec", () => {
  it("sends one message", async () => {
    const { sandbox, sockets } = await started({ cwd: "/tmp", env: { A: "1" }, timeoutMs: 5 });
    expect(sockets.last.url).toBe("ws://sandpiper.memory/v1/socket");
    expect(sockets.last.protocols).toEqual(["sandpiper.v1", "bearer.memory-key"]);
    expect(sockets.last.messages).toMatchObject([
      {
        type: "open",
        stream: 0,
        kind: "process",
        sandbox: sandbox.id,
        spawn: { command: "command", cwd: "/tmp", env: { A: "1" }, timeoutMs: 5, stdin: false },
        offset: 0,
        window: WINDOW_BYTES,
      },
    ]);
  });

  it("returns results of one shape", async () => {
    const { result, opened, write, end } = await started();
    opened();
    write(0, text("out"));
    write(3, text("err"), "stderr");
    end(6, { exitCode: 3, durationMs: 1.5 });
    expect(JSON.stringify(await result)).toBe(
      '{"exitCode":3,"signal":null,"stdout":"out","stderr":"err","durationMs":1.5,"timedOut":false,"outOfMemory":false,"truncated":false}',
    );
  });

  it("makes the node forget the process only after its end has arrived", async () => {
    const { sockets, timing, result, opened, end } = await started();
    opened();
    expect(sockets.last.messages).toHaveLength(1);
    end(0);
    await result;
    await timing.advance(0);
    const [first, second] = sockets.last.messages;
    const process = first?.type === "open" && first.kind === "process" ? first.process : undefined;
    expect(second).toMatchObject({ type: "open", kind: "forget", process });
  });

  it("decodes output as a whole, wherever its chunks are cut", async () => {
    const { result, opened, write, end } = await started();
    opened();
    const bytes = text("é€😀");
    for (const [offset, byte] of bytes.entries()) write(offset, Uint8Array.of(byte));
    end(bytes.length);
    expect((await result).stdout).toBe("é€😀");
  });

  it("continues at the next byte after a lost connection, without repetition", async () => {
    const { sockets, result, opened, write, end, cut } = await started();
    opened();
    write(0, text("abc"));
    await cut();
    expect(sockets.all).toHaveLength(2);
    expect(sockets.last.open).toMatchObject({ offset: 3 });
    opened();
    write(1, text("bcde"));
    await cut();
    expect(sockets.last.open).toMatchObject({ offset: 5 });
    opened();
    write(5, text("f"));
    end(6);
    expect((await result).stdout).toBe("abcdef");
  });

  it("repeats the start of the command until it is confirmed, and never after that", async () => {
    const { sockets, opened, cut } = await started();
    await cut();
    expect(sockets.last.open).toMatchObject({ spawn: { command: "command" } });
    opened();
    await cut();
    expect(sockets.last.open).not.toHaveProperty("spawn");
  });

  it("grants credit as output arrives, so that any amount gets through", async () => {
    const { sockets, result, opened, write, end } = await started({ maxOutputBytes: 4 });
    opened();
    const piece = new Uint8Array(256 * 1024).fill(97);
    for (let sent = 0; sent < 16; sent++) write(sent * piece.length, piece);
    const credits = sockets.last.messages.filter((message) => message.type === "credit");
    expect(credits.reduce((sum, { amount }) => sum + amount, 0)).toBe(16 * piece.length);
    end(16 * piece.length);
    expect(await result).toMatchObject({ stdout: "aaaa", truncated: true });
  });

  it("marks the result as truncated when output was dropped before it was read", async () => {
    const { result, opened, write, end } = await started();
    opened();
    write(10, text("late"));
    end(14);
    expect(await result).toMatchObject({ stdout: "late", truncated: true });
  });

  it("is refused when output is missing at its end", async () => {
    const { result, opened, end } = await started();
    opened();
    end(5);
    expect(await rejection(result)).toMatchObject({ code: "data_loss", reason: "stream_cut" });
  });

  it("kills the command when its caller aborts", async () => {
    const abort = new AbortController();
    const { sockets, result, opened, requests } = await started({ signal: abort.signal });
    opened();
    abort.abort();
    expect(await rejection(result)).toMatchObject({ code: "canceled" });
    expect(sockets.last.messages.at(-1)).toEqual({ type: "close", stream: 0 });
    expect(requests).toEqual([expect.stringMatching(/^DELETE .*\/processes\//)]);
  });

  it("kills a command whose start is confirmed after the abort", async () => {
    const abort = new AbortController();
    const { result, opened, requests, cut, sockets } = await started({ signal: abort.signal });
    abort.abort();
    expect(await rejection(result)).toMatchObject({ code: "canceled" });
    expect(requests).toEqual([]);
    await cut();
    expect(sockets.last.open).not.toHaveProperty("spawn");
    opened();
    expect(requests).toHaveLength(1);
  });

  it("starts nothing when its caller has already aborted", async () => {
    const { sandbox, sockets } = await scriptedSandbox();
    expect(await rejection(sandbox.exec("x", { signal: AbortSignal.abort() }))).toMatchObject({ code: "canceled" });
    expect(sockets.all).toEqual([]);
  });

  it("kills the command when a callback throws, and fails with the callback's error", async () => {
    const thrown = new Error("callback");
    const onStdout = () => {
      throw thrown;
    };
    const { result, opened, write, requests } = await started({ onStdout });
    opened();
    write(0, text("x"));
    await expect(result).rejects.toBe(thrown);
    expect(requests).toHaveLength(1);
  });

  it("sends its input when the process runs, and repeats only the bytes that had not arrived", async () => {
    const { sockets, result, opened, end, cut } = await started({ stdin: "hello world" });
    opened();
    expect(sockets.last.open).toMatchObject({ kind: "stdin", stream: 1 });
    sockets.last.reply({ type: "opened", stream: 1, offset: 0 });
    expect(sockets.last.messages.at(-1)).toEqual({ type: "finish", stream: 1, offset: 11 });
    await cut();
    opened();
    sockets.last.reply({ type: "opened", stream: 1, offset: 6 });
    expect(sockets.last.input.map(({ offset, bytes }) => [offset, new TextDecoder().decode(bytes)])).toEqual([
      [6, "world"],
    ]);
    expect(sockets.last.messages.at(-1)).toEqual({ type: "finish", stream: 1, offset: 11 });
    end(0);
    expect((await result).exitCode).toBe(0);
  });

  it("fails with the node's error", async () => {
    const { sockets, result } = await started();
    const said = {
      code: "not_found",
      reason: "no_such_program",
      message: "program ls not found",
      hint: "install it",
    } as const;
    sockets.last.reply({ type: "error", stream: 0, error: { ...said, details: {}, requestId: "r" } });
    expect(await rejection(result)).toMatchObject({ ...said, details: { requestId: "r" } });
  });
});
