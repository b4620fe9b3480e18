import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { scriptedSandbox } from "../testing/scripted-sandbox.ts";

const EXIT = { exitCode: 0, signal: null, timedOut: false, outOfMemory: false, durationMs: 1 };
const text = (value: string) => new TextEncoder().encode(value);
const notFound = { code: "not_found", reason: "no_such_process", message: "?", details: {}, requestId: "r" } as const;

type Scripted = Awaited<ReturnType<typeof scriptedSandbox>>;

/** A command that waits for the node's answer. */
async function executing() {
  const scripted = await scriptedSandbox();
  const result = scripted.sandbox.exec("a");
  scripted.sockets.last.accept();
  return { ...scripted, scripted, result };
}

/** A callback that another client's rollbacks reach. */
async function watched() {
  const scripted = await scriptedSandbox();
  return { ...scripted, scripted, elsewhere: await scripted.client.sandboxes.connect(scripted.sandbox.id) };
}

/** Moves the sandbox, and reconnects the client. */
async function move({ sockets, timing }: Scripted): Promise<void> {
  sockets.last.restart();
  await timing.advance(100);
  sockets.last.accept();
}

describe("output of a sandbox that was rolled back", () => {
  it("fails the command with the position that it had reached", async () => {
    const { scripted, sockets, result } = await executing();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 2 });
    sockets.last.data({ stream: 0, source: "stdout", offset: 0, bytes: text("hello") });
    await move(scripted);
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 3 });
    const error = await rejection(result);
    expect(error).toMatchObject({ code: "data_loss", reason: "rolled_back", details: { position: 5, rollbacks: 3 } });
    expect(sockets.last.messages.at(-1)).toEqual({ type: "close", stream: 0 });
  });

  it("is also detected from the error when the process is newer than the checkpoint", async () => {
    const scripted = await scriptedSandbox();
    const { sandbox, sockets } = scripted;
    const [undone, forgotten] = [sandbox.exec("a"), sandbox.exec("b")];
    sockets.last.accept();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
    sockets.last.reply({ type: "opened", stream: 1, pid: 1, rollbacks: 1 });
    await move(scripted);
    sockets.last.reply({ type: "error", stream: 0, error: notFound, rollbacks: 1 });
    sockets.last.reply({ type: "error", stream: 1, error: notFound, rollbacks: 1 });
    expect(await rejection(undone)).toMatchObject({ reason: "rolled_back" });
    expect(await rejection(forgotten)).toMatchObject({ reason: "no_such_process" });
  });

  it("continues when the number of rollbacks is the same", async () => {
    const { scripted, sockets, result } = await executing();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 2 });
    await move(scripted);
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 2 });
    sockets.last.reply({ type: "end", stream: 0, exit: EXIT, offset: 0 });
    expect((await result).exitCode).toBe(0);
  });

  it("starts a command again whose start was never confirmed", async () => {
    const { scripted, sockets, result } = await executing();
    await move(scripted);
    expect(sockets.last.open).toHaveProperty("spawn");
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 9 });
    sockets.last.reply({ type: "end", stream: 0, exit: EXIT, offset: 0 });
    expect((await result).exitCode).toBe(0);
  });

  it("can be read again from the start after another attach", async () => {
    const scripted = await scriptedSandbox();
    const { sandbox, sockets } = scripted;
    const attaching = sandbox.attach("p", { offset: 5 });
    sockets.last.accept();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
    const process = await attaching;
    await move(scripted);
    sockets.last.reply({ type: "opened", stream: 0, pid: 1, rollbacks: 1 });
    expect(await rejection(process.wait())).toMatchObject({ reason: "rolled_back" });
    expect(await rejection(Array.fromAsync(process.output))).toMatchObject({ reason: "rolled_back" });
    // The handle belongs to the old history, whichever of its streams is opened next.
    const again = rejection(Array.fromAsync(process.output));
    sockets.last.reply({ type: "opened", stream: 1, pid: 1, rollbacks: 1 });
    expect(await again).toMatchObject({ reason: "rolled_back" });

    const attached = sandbox.attach("p");
    expect(sockets.last.open).toMatchObject({ stream: 2, offset: 0 });
    sockets.last.reply({ type: "opened", stream: 2, pid: 1, rollbacks: 1 });
    sockets.last.data({ stream: 2, source: "stdout", offset: 0, bytes: text("new") });
    sockets.last.reply({ type: "end", stream: 2, exit: EXIT, offset: 3 });
    expect(await Array.fromAsync((await attached).output)).toMatchObject([{ offset: 0, bytes: text("new") }]);
  });
});

describe("input of a sandbox that was rolled back", () => {
  async function writing() {
    const scripted = await scriptedSandbox();
    const { sandbox, sockets } = scripted;
    const attaching = sandbox.attach("p");
    sockets.last.accept();
    sockets.last.reply({ type: "opened", stream: 0, pid: 1 });
    const process = await attaching;
    return { ...scripted, scripted, process };
  }

  it("is not sent into another history", async () => {
    const { scripted, sockets, process } = await writing();
    const first = process.write("hello");
    sockets.last.reply({ type: "opened", stream: 1, offset: 10 });
    sockets.last.reply({ type: "ack", stream: 1, offset: 15 });
    await first;
    const second = process.write("there");
    second.catch(() => {});
    const closing = process.closeStdin();
    await move(scripted);
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
    const { scripted, sockets, process } = await writing();
    const closing = process.closeStdin();
    sockets.last.reply({ type: "opened", stream: 1, offset: 0 });
    await move(scripted);
    sockets.last.reply({ type: "error", stream: 1, error: notFound, rollbacks: 1 });
    expect(await rejection(closing)).toMatchObject({ reason: "rolled_back" });
  });

  it("is refused even if its stream was not open before", async () => {
    const { scripted, sockets, process } = await writing();
    await move(scripted);
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
    const { scripted, sandbox, sockets, elsewhere } = await watched();
    await elsewhere.checkpoint();
    const reported: string[] = [];
    sandbox.onRollback(({ at }) => reported.push(at));
    sockets.last.accept();
    sockets.last.reply({ type: "opened", stream: 0 });
    const { rolledBackTo } = await elsewhere.rollback();
    await move(scripted);
    expect(sockets.last.open).toMatchObject({ kind: "events", after: 0 });
    sockets.last.reply({ type: "opened", stream: 0 });
    await settle();
    expect(reported).toEqual([rolledBackTo?.at]);
  });

  it("gets a rollback that a stream detects", async () => {
    const { scripted, sandbox, sockets, elsewhere } = await watched();
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
    await scripted.timing.advance(50);
    sockets.last.reply({ type: "opened", stream: 2, pid: 1, rollbacks: 1 });
    expect(await rejection(result)).toMatchObject({ reason: "rolled_back" });
    await settle();
    expect(reported).toBe(1);
  });
});
