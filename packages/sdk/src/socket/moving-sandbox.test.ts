import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { EXIT, executing, scriptedSandbox, text } from "../testing/scripted-sandbox.ts";

function unavailable(reason: string) {
  return { code: "unavailable", reason, message: "?", details: {}, requestId: "r" } as const;
}

describe("a stream of a sandbox that moves to another node", () => {
  it.each(["restoring", "handoff_under_way", "owner_unreachable", "sandbox_moved"])(
    "is opened again, under another number and from its offset, after %s",
    async (reason) => {
      const { sockets, timing, result } = await executing();
      sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
      sockets.last.data({ stream: 0, source: "stdout", offset: 0, bytes: text("hello ") });
      sockets.last.reply({ type: "error", stream: 0, error: unavailable(reason) });
      await timing.advance(37);
      expect(sockets.last.messages).toHaveLength(1);
      await timing.advance(1);
      expect(sockets.last.open).toMatchObject({ stream: 1, kind: "process", offset: 6 });
      expect(sockets.last.open).not.toHaveProperty("spawn");
      sockets.last.reply({ type: "error", stream: 1, error: unavailable(reason) });
      await timing.advance(74);
      expect(sockets.last.messages).toHaveLength(2);
      await timing.advance(1);
      expect(sockets.last.open).toMatchObject({ stream: 2, offset: 6 });
      sockets.last.reply({ type: "opened", stream: 2, pid: 1 });
      sockets.last.data({ stream: 2, source: "stdout", offset: 6, bytes: text("there") });
      sockets.last.reply({ type: "end", stream: 2, exit: EXIT, offset: 11 });
      expect((await result).stdout).toBe("hello there");
    },
  );

  it("starts a new wait, with the first pause, when the sandbox moves again", async () => {
    const { sockets, timing } = await executing();
    for (let stream = 0; stream < 4; stream++) {
      sockets.last.reply({ type: "opened", stream, pid: 1 });
      sockets.last.reply({ type: "error", stream, error: unavailable("restoring") });
      await timing.advance(38);
      expect(sockets.last.open).toMatchObject({ stream: stream + 1 });
    }
  });

  it("starts its command only with the accepted message", async () => {
    const { sockets, timing, result } = await executing();
    const { spawn } = sockets.last.open as { spawn?: object };
    sockets.last.reply({ type: "error", stream: 0, error: unavailable("restoring") });
    await timing.advance(38);
    expect(sockets.last.open).toMatchObject({ stream: 1, spawn });
    sockets.last.reply({ type: "end", stream: 1, exit: EXIT, offset: 0 });
    expect((await result).exitCode).toBe(0);
  });

  it("fails when the move takes longer than the reconnect timeout", async () => {
    const { sockets, timing, result } = await executing();
    let isFailed = false;
    result.catch(() => {
      isFailed = true;
    });
    const refuse = () => {
      const { stream } = sockets.last.open;
      sockets.last.reply({ type: "error", stream, error: unavailable("restoring") });
    };
    for (let passedMs = 0; passedMs < 59_000; passedMs += 1_000) {
      refuse();
      await timing.advance(1_000);
    }
    expect(isFailed).toBe(false);
    for (let passedMs = 0; passedMs < 4_000; passedMs += 2_000) {
      refuse();
      await timing.advance(2_000);
    }
    expect(await rejection(result)).toMatchObject({ code: "unavailable", reason: "restoring" });
  });

  it("fails immediately for any other reason", async () => {
    const { sockets, result } = await executing();
    sockets.last.reply({ type: "error", stream: 0, error: unavailable("instance_crashed") });
    expect(await rejection(result)).toMatchObject({ reason: "instance_crashed" });
  });

  it("keeps its pause when the connection is lost", async () => {
    const { sockets, timing, result } = await executing();
    sockets.last.reply({ type: "error", stream: 0, error: unavailable("restoring") });
    sockets.last.restart();
    await timing.advance(0);
    expect(sockets.all).toHaveLength(2);
    sockets.last.accept();
    expect(sockets.last.messages).toEqual([]);
    await timing.advance(38);
    expect(sockets.last.messages).toMatchObject([{ type: "open", stream: 1 }]);
    sockets.last.reply({ type: "end", stream: 1, exit: EXIT, offset: 0 });
    expect((await result).exitCode).toBe(0);
  });

  it("leaves no timer or stream when it is canceled", async () => {
    const { client, sandbox, sockets, timing } = await scriptedSandbox();
    const abort = new AbortController();
    const attaching = sandbox.attach("p", { signal: abort.signal });
    attaching.catch(() => {});
    const other = sandbox.attach("q");
    other.catch(() => {});
    sockets.last.accept();
    sockets.last.reply({ type: "error", stream: 0, error: unavailable("restoring") });
    sockets.last.reply({ type: "error", stream: 1, error: unavailable("restoring") });
    abort.abort();
    expect(await rejection(attaching)).toMatchObject({ code: "canceled" });
    client.close();
    expect(await rejection(other)).toMatchObject({ reason: "client_closed" });
    expect(timing.pending).toBe(0);
  });
});
