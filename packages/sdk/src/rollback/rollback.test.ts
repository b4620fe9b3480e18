import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import type { AttachOptions } from "../process/open-process.ts";
import { EXIT, executing, scriptedSandbox, text } from "../testing/scripted-sandbox.ts";

const notFound = { code: "not_found", reason: "no_such_process", message: "?", details: {}, requestId: "r" } as const;

/** A callback that another client's rollbacks reach. */
async function watched() {
  const scripted = await scriptedSandbox();
  return { ...scripted, elsewhere: await scripted.client.sandboxes.connect(scripted.sandbox.id) };
}

async function attached(options: AttachOptions = {}) {
  const scripted = await scriptedSandbox();
  const { sandbox, sockets } = scripted;
  const attaching = sandbox.attach("p", options);
  sockets.last.accept();
  sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
  return { ...scripted, process: await attaching };
}

describe("output of a sandbox that was rolled back", () => {
  it("fails the command with the position that it had reached", async () => {
    const { sockets, move, result } = await executing();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 2 });
    sockets.last.data({ stream: 0, source: "stdout", offset: 0, bytes: text("hello") });
    await move();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 3 });
    const error = await rejection(result);
    expect(error).toMatchObject({ code: "data_loss", reason: "rolled_back", details: { position: 5, rollbacks: 3 } });
    expect(sockets.last.messages.at(-1)).toEqual({ type: "close", stream: 0 });
  });

  it("is also detected from the error when the process is newer than the checkpoint", async () => {
    const { sandbox, sockets, move } = await scriptedSandbox();
    const [undone, forgotten] = [sandbox.exec("a"), sandbox.exec("b")];
    sockets.last.accept();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
    sockets.last.reply({ type: "opened", stream: 1, pid: 1, rollbacks: 1 });
    await move();
    sockets.last.reply({ type: "error", stream: 0, error: notFound, rollbacks: 1 });
    sockets.last.reply({ type: "error", stream: 1, error: notFound, rollbacks: 1 });
    expect(await rejection(undone)).toMatchObject({ reason: "rolled_back" });
    expect(await rejection(forgotten)).toMatchObject({ reason: "no_such_process" });
  });

  it("continues when the number of rollbacks is the same", async () => {
    const { sockets, move, result } = await executing();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 2 });
    await move();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 2 });
    sockets.last.reply({ type: "end", stream: 0, exit: EXIT, offset: 0 });
    expect((await result).exitCode).toBe(0);
  });

  it("starts a command again whose start was never confirmed, and says that it repeats the start", async () => {
    const { sockets, move, result } = await executing();
    expect(sockets.last.open).not.toHaveProperty("repeated");
    await move();
    expect(sockets.last.open).toMatchObject({ spawn: expect.anything(), repeated: true });
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 9 });
    sockets.last.reply({ type: "end", stream: 0, exit: EXIT, offset: 0 });
    expect((await result).exitCode).toBe(0);
  });

  it("can be read again from the start after another attach", async () => {
    const { sandbox, sockets, move, process } = await attached({ offset: 5 });
    await move();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 1 });
    expect(await rejection(process.wait())).toMatchObject({ reason: "rolled_back" });
    expect(await rejection(Array.fromAsync(process.output))).toMatchObject({ reason: "rolled_back" });
    // The handle belongs to the old history, whichever of its streams is opened next.
    const again = rejection(Array.fromAsync(process.output));
    sockets.last.reply({ type: "opened", stream: 1, pid: 1, rollbacks: 1 });
    expect(await again).toMatchObject({ reason: "rolled_back" });

    const attaching = sandbox.attach("p");
    expect(sockets.last.open).toMatchObject({ stream: 2, offset: 0 });
    sockets.last.reply({ type: "opened", stream: 2, pid: 1, rollbacks: 1 });
    sockets.last.data({ stream: 2, source: "stdout", offset: 0, bytes: text("new") });
    sockets.last.reply({ type: "end", stream: 2, exit: EXIT, offset: 3 });
    expect(await Array.fromAsync((await attaching).output)).toMatchObject([{ offset: 0, bytes: text("new") }]);
  });
});

describe("input of a sandbox that was rolled back", () => {
  it("is not sent into another history", async () => {
    const { sockets, move, process } = await attached();
    const first = process.write("hello");
    sockets.last.reply({ type: "opened", stream: 1, offset: 10 });
    sockets.last.reply({ type: "ack", stream: 1, offset: 15 });
    await first;
    const second = process.write("there");
    second.catch(() => {});
    const closing = process.closeStdin();
    await move();
    sockets.last.reply({ type: "opened", stream: 1, offset: 2, rollbacks: 1 });
    expect(await rejection(second)).toMatchObject({
      code: "data_loss",
      reason: "rolled_back",
      details: { position: 15, rollbacks: 1 },
    });
    expect(await rejection(closing)).toMatchObject({ reason: "rolled_back" });
    expect(sockets.last.input).toEqual([]);
  });

  it("does not count as closed when the process is gone", async () => {
    const { sockets, move, process } = await attached();
    const closing = process.closeStdin();
    sockets.last.reply({ type: "opened", stream: 1, offset: 0 });
    await move();
    sockets.last.reply({ type: "error", stream: 1, error: notFound, rollbacks: 1 });
    expect(await rejection(closing)).toMatchObject({ reason: "rolled_back" });
  });

  it("is refused even if its stream was not open before", async () => {
    const { sockets, move, process } = await attached();
    await move();
    const write = process.write("x");
    sockets.last.reply({ type: "opened", stream: 1, offset: 0, rollbacks: 1 });
    expect(await rejection(write)).toMatchObject({ reason: "rolled_back" });
  });
});

describe("a callback for rollbacks", () => {
  const rolledBack = (id: number) =>
    ({ id, at: "2026-01-01T00:00:00.000Z", kind: "sandbox.rolled_back", sandboxId: null, details: {} }) as const;

  it("gets each later rollback once, with its checkpoint", async () => {
    const { sandbox, sockets, elsewhere } = await watched();
    const { id: checkpoint } = await sandbox.checkpoint();
    await sandbox.rollback();
    const reported: string[] = [];
    const stop = sandbox.onRollback((rollback) => reported.push(rollback.checkpoint));
    sockets.last.accept();
    expect(sockets.last.open).toMatchObject({ kind: "events", after: 0, sandbox: sandbox.id });
    sockets.last.reply({ type: "opened", stream: 0 });
    sockets.last.reply({ type: "item", stream: 0, item: rolledBack(1) });
    await settle();
    expect(reported).toEqual([]);
    await elsewhere.rollback(checkpoint);
    sockets.last.reply({ type: "item", stream: 0, item: rolledBack(2) });
    sockets.last.reply({ type: "item", stream: 0, item: rolledBack(3) });
    await settle();
    expect(reported).toEqual([checkpoint]);
    await elsewhere.refresh();
    stop();
    expect(sockets.last.messages.at(-1)).toEqual({ type: "close", stream: 0 });
    await elsewhere.rollback();
    await sandbox.refresh();
    await settle();
    expect(reported).toHaveLength(1);
  });

  it("gets a rollback that happened without a connection", async () => {
    const { sandbox, sockets, move, elsewhere } = await watched();
    await elsewhere.checkpoint();
    const reported: string[] = [];
    sandbox.onRollback(({ at }) => reported.push(at));
    sockets.last.accept();
    sockets.last.reply({ type: "opened", stream: 0 });
    const { rolledBackTo } = await elsewhere.rollback();
    await move();
    expect(sockets.last.open).toMatchObject({ kind: "events", after: 0 });
    sockets.last.reply({ type: "opened", stream: 0 });
    await settle();
    expect(reported).toEqual([rolledBackTo?.at]);
  });

  it("gets a rollback that a stream detects", async () => {
    const { sandbox, sockets, timing, elsewhere } = await watched();
    await elsewhere.checkpoint();
    let reported = 0;
    sandbox.onRollback(() => reported++);
    const result = sandbox.exec("a");
    sockets.last.accept();
    sockets.last.reply({ type: "opened", stream: 0 });
    sockets.last.reply({ type: "opened", stream: 1, pid: 1 });
    await elsewhere.rollback();
    const restoring = { ...notFound, code: "unavailable", reason: "restoring" } as const;
    sockets.last.reply({ type: "error", stream: 1, error: restoring });
    await timing.advance(50);
    sockets.last.reply({ type: "opened", stream: 2, pid: 1, rollbacks: 1 });
    expect(await rejection(result)).toMatchObject({ reason: "rolled_back" });
    await settle();
    expect(reported).toBe(1);
  });
});
