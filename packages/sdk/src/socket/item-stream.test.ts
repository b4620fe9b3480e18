import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { scriptedSandbox } from "../testing/scripted-sandbox.ts";

const event = (id: number) =>
  ({ id, at: "2026-01-01T00:00:00.000Z", kind: "sandbox.ready", sandboxId: null, details: {} }) as const;

describe("events", () => {
  it("continue after the last one that arrived", async () => {
    const { client, sockets, cut } = await scriptedSandbox();
    const events = client.events({ after: 3 });
    sockets.last.accept();
    expect(sockets.last.open).toMatchObject({ kind: "events", after: 3, window: 1024 });
    sockets.last.reply({ type: "opened", stream: 0 });
    await events.ready;
    sockets.last.reply({ type: "item", stream: 0, item: event(4) });
    sockets.last.reply({ type: "item", stream: 0, item: event(5) });
    await cut();
    expect(sockets.last.open).toMatchObject({ after: 5, window: 1022 });
    sockets.last.reply({ type: "opened", stream: 0 });
    sockets.last.reply({ type: "item", stream: 0, item: event(6) });
    const ids = [];
    for await (const { id } of events) if (ids.push(id) === 3) break;
    expect(ids).toEqual([4, 5, 6]);
    expect(sockets.last.messages.at(-1)).toEqual({ type: "close", stream: 0 });
  });

  it("are sent no faster than they are read", async () => {
    const { client, sockets } = await scriptedSandbox();
    const events = client.events();
    sockets.last.accept();
    for (let id = 1; id <= 1024; id++) sockets.last.reply({ type: "item", stream: 0, item: event(id) });
    const loop = events[Symbol.asyncIterator]();
    for (let taken = 0; taken < 511; taken++) await loop.next();
    expect(sockets.last.messages).toHaveLength(1);
    await loop.next();
    expect(sockets.last.messages.at(-1)).toEqual({ type: "credit", stream: 0, amount: 512 });
  });

  it("end with `canceled` when their caller aborts", async () => {
    const { client } = await scriptedSandbox();
    const abort = new AbortController();
    const loop = client.events({ signal: abort.signal })[Symbol.asyncIterator]();
    const next = rejection(loop.next());
    await settle();
    abort.abort();
    expect(await next).toMatchObject({ code: "canceled" });
    expect(await rejection(client.events({ signal: abort.signal }).ready)).toMatchObject({ code: "canceled" });
  });
});

describe("a watch", () => {
  it("is set again after a lost connection, with an overflow event", async () => {
    const { sandbox, sockets, cut } = await scriptedSandbox();
    const watching = sandbox.watch("/data", { recursive: true });
    sockets.last.accept();
    expect(sockets.last.open).toMatchObject({ kind: "watch", path: "/data", recursive: true });
    sockets.last.reply({ type: "opened", stream: 0 });
    const watcher = await watching;
    sockets.last.reply({ type: "item", stream: 0, item: { kind: "create", path: "a", to: null } });
    await cut();
    sockets.last.reply({ type: "opened", stream: 0 });
    sockets.last.reply({ type: "item", stream: 0, item: { kind: "write", path: "a", to: null } });
    const kinds = [];
    for await (const { kind } of watcher) if (kinds.push(kind) === 3) break;
    expect(kinds).toEqual(["create", "overflow", "write"]);
  });

  it("fails if the path does not exist", async () => {
    const { sandbox, sockets } = await scriptedSandbox();
    const watching = sandbox.watch("/data");
    sockets.last.accept();
    const error = { code: "not_found", reason: "no_such_file", message: "?", details: {}, requestId: "r" } as const;
    sockets.last.reply({ type: "error", stream: 0, error });
    expect(await rejection(watching)).toMatchObject({ code: "not_found" });
  });
});
