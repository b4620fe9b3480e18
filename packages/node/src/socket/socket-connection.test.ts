import type { EventBody } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { type SocketNode, startSocketNode } from "./testing/socket-node.ts";
import { watchHolds } from "./testing/watch-holds.ts";

let node: SocketNode;
let live: LiveSandbox;
let token: string;
beforeEach(async () => {
  node = await startSocketNode({ provider: new MockProvider() });
  ({ live, token } = await node.createSandbox());
});
afterEach(() => node[Symbol.asyncDispose]());

const field = (message: object, name: string) => (message as Record<string, unknown>)[name];

describe("a watch stream", () => {
  it("sends the changes below a path, one for each credit", async () => {
    await live.files.mkdir("/watched");
    const client = await node.connect({
      type: "open",
      stream: 1,
      kind: "watch",
      sandbox: live.id,
      path: "/watched",
      window: 1,
    });
    expect(await client.next()).toEqual({ type: "opened", stream: 1 });
    await live.files.write("/watched/a", "1");
    await live.files.write("/watched/b", "1");
    const first = await client.next();
    expect(first).toMatchObject({ type: "item", stream: 1, item: { path: "a", to: null } });
    await client.send({ type: "credit", stream: 1, amount: 10 });
    const rest = await client.until((message) => field(field(message, "item") as object, "path") === "b");
    expect(rest.length).toBeGreaterThan(0);
  });

  it("fails when the path does not exist", async () => {
    const client = await node.connect({
      type: "open",
      stream: 1,
      kind: "watch",
      sandbox: live.id,
      path: "/missing",
      window: 1,
    });
    expect(await client.next()).toMatchObject({ type: "error", stream: 1, error: { code: "not_found" } });
  });
});

describe("an events stream", () => {
  const open = { type: "open", stream: 1, kind: "events", after: 0, window: 100 };
  const next = async (client: ReturnType<SocketNode["client"]>) => field(await client.next(), "item") as EventBody;

  it("replays the events after an id, then sends new ones", async () => {
    const client = await node.connect(open);
    expect(await client.next()).toEqual({ type: "opened", stream: 1 });
    const created = await next(client);
    const ready = await next(client);
    expect([created.kind, ready.kind]).toEqual(["sandbox.created", "sandbox.ready"]);
    await live.start({ process: "p1", command: "sleep 60" });
    expect(await next(client)).toMatchObject({ kind: "process.started", sandboxId: live.id });
    const later = await node.connect({ ...open, after: created.id });
    await later.next();
    expect(await next(later)).toEqual(ready);
  });

  it("begins with the state of every sandbox on request", async () => {
    const client = await node.connect({ ...open, replay: true, sandbox: live.id });
    expect(await client.next()).toMatchObject({ type: "opened" });
    const state = { kind: "sandbox.state", sandboxId: live.id, details: { state: "ready" } };
    expect(await client.next()).toMatchObject({ type: "item", item: state });
  });

  it("hides the events of other tenants, and shows a token only its own sandbox's", async () => {
    const other = await node.connect(
      { ...open, sandbox: live.id },
      { credential: node.makeKey({ tenant: "other" }).key },
    );
    await other.next();
    const { live: second } = await node.createSandbox();
    const holder = await node.connect(open, { credential: token });
    await holder.next();
    await second.start({ command: "true" });
    await live.start({ command: "sleep 60" });
    const seen = [await next(holder), await next(holder), await next(holder)];
    expect(seen.map(({ sandboxId }) => sandboxId)).toEqual([live.id, live.id, live.id]);
    await holder.send({ ...open, stream: 2, sandbox: second.id });
    expect(await holder.next()).toMatchObject({ type: "error", stream: 2, error: { code: "not_found" } });
    // The answer to the last request proves that no event came before it.
    await other.send({ ...open, stream: 2, kind: "nonsense" });
    expect(await other.next()).toMatchObject({ type: "error", stream: 2 });
  });
});

describe("a connection", () => {
  const process = (stream: number, fields: object = {}) => ({
    type: "open",
    stream,
    kind: "process",
    sandbox: live.id,
    process: `p${stream}`,
    offset: 0,
    window: 1000,
    ...fields,
  });

  it("fails only the stream that a malformed message names, and says what is wrong", async () => {
    const client = await node.connect(process(1, { spawn: { command: "sleep 60" } }));
    await client.next();
    for (const fields of [{ offset: -1 }, { process: "../x" }, { window: 0 }, { sandbox: "no id" }, { extra: 1 }]) {
      await client.send(process(2, fields));
      expect(await client.next()).toMatchObject({ type: "error", stream: 2, error: { reason: "malformed_message" } });
    }
    await client.send(process(2, { spawn: { argv: ["true"], command: "true" } }));
    expect(await client.next()).toMatchObject({
      error: { message: expect.stringContaining("one of command, argv and code") },
    });
    await client.send(process(3, { spawn: { command: "true" } }));
    expect(await client.next()).toMatchObject({ type: "opened", stream: 3 });
  });

  it.each(["{", "[]", "null", '"open"', '{"type":"open"}', '{"stream":-1}'])("is closed after %s", async (message) => {
    const client = await node.connect(message);
    const error = await client.next();
    expect(error).toMatchObject({ type: "error", error: { reason: "malformed_message" } });
    expect(error).not.toHaveProperty("stream");
    expect((await client.closed).code).toBe(1002);
  });

  it("is closed after too many malformed messages", async () => {
    const client = node.client("/v1/socket");
    for (let n = 0; n < 33; n++) await client.send({ type: "nonsense", stream: n });
    expect((await client.closed).code).toBe(1008);
  });

  it("is closed after a message that is too long, and after an invalid binary frame", async () => {
    const long = await node.connect("x".repeat(17 * 1024 * 1024));
    expect((await long.closed).code).toBe(1009);
    const short = node.client("/v1/socket");
    await short.opened();
    short.webSocket.send(Buffer.from([1, 2, 3]));
    expect((await short.closed).code).toBe(1002);
  });

  it("allows at most 1024 streams", async () => {
    const client = node.client("/v1/socket");
    for (let stream = 0; stream <= 1024; stream++) {
      await client.send({ type: "open", stream, kind: "events", after: 1_000_000, window: 1 });
    }
    const messages = await client.until((message) => field(message, "type") === "error");
    expect(messages.at(-1)).toMatchObject({ stream: 1024, error: { reason: "stream_limit" } });
    await client.send({ type: "close", stream: 0 });
    await client.send({ type: "open", stream: 1025, kind: "events", after: 1_000_000, window: 1 });
    expect((await client.until((message) => field(message, "stream") === 1025)).at(-1)).toMatchObject({
      type: "opened",
    });
  });

  it("ends a stream whose number is used twice, and ignores messages about ended streams", async () => {
    const client = await node.connect(process(1, { spawn: { command: "sleep 60" } }));
    await client.next();
    await client.send(process(1));
    expect(await client.next()).toMatchObject({ type: "error", stream: 1, error: { reason: "stream_in_use" } });
    await client.send({ type: "credit", stream: 1, amount: 5 });
    await client.send({ type: "finish", stream: 1, offset: 5 });
    await client.sendStdin(1, 0, "late");
    await client.send({ type: "close", stream: 1 });
    await client.send(process(2, { spawn: { command: "true" } }));
    expect(await client.next()).toMatchObject({ type: "opened", stream: 2 });
  });

  it("keeps a sandbox from becoming idle while one of its streams is open", async () => {
    const { resource, live: idle } = await node.createSandbox();
    const held = watchHolds(idle);
    const client = node.client("/v1/socket");
    const watch = { type: "open", kind: "watch", sandbox: resource.id, path: "/", window: 1 };
    await client.send({ ...watch, stream: 1 });
    await client.send({ ...watch, stream: 2 });
    await client.take(2);
    await client.send({ type: "close", stream: 1 });
    await client.send({ ...watch, stream: 3, path: "/missing" });
    await client.next();
    expect(held).toEqual(["+client"]);
    await client.close();
    await expect.poll(() => held).toEqual(["+client", "-client"]);
  });
});
