import { once } from "node:events";
import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, encodeDataFrame, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import type { Location } from "../handoff/locator.ts";
import { untilSettled } from "../testing/until-settled.ts";
import { type Owner, RelayNodes } from "./testing/relay-nodes.ts";

const LOST = "lost the node that owns a sandbox";
let nodes: RelayNodes;
let owner: Owner;
let id: SandboxId;

beforeEach(async () => {
  nodes = new RelayNodes();
  owner = await nodes.owner();
  id = createSandboxId();
  nodes.holders.set(id, { kind: "node", id: "2", url: owner.url });
});

afterEach(() => nodes[Symbol.asyncDispose]());

function open(stream: number, sandbox: string = id): string {
  return JSON.stringify({ type: "open", stream, kind: "stdin", sandbox, process: `p${stream}` });
}

const credit = (stream: number) => JSON.stringify({ type: "credit", stream, amount: 1 });
const close = (stream: number) => JSON.stringify({ type: "close", stream });
const input = (stream: number, bytes = new Uint8Array(3)) =>
  encodeDataFrame({ stream, source: "stdin", offset: 0, bytes });

/** The messages that a socket receives, as text. */
function heard(socket: WebSocket): string[] {
  const messages: string[] = [];
  socket.on("message", (data, isBinary) => messages.push(isBinary ? `${(data as Buffer).length} bytes` : String(data)));
  return messages;
}

/** The messages that the owner receives, as text. */
function ownerHeard(): string[] {
  const messages: string[] = [];
  owner.onMessage = (_, data, isBinary) => messages.push(isBinary ? `${data.length} bytes` : data.toString());
  return messages;
}

/** A client with a stream about the sandbox, and the owner's end of the connection that relays it. */
async function connected(options?: Parameters<RelayNodes["connect"]>[0]) {
  const client = await nodes.connect(options);
  client.send(open(1));
  await until(() => owner.sockets.length === 1);
  return { client, socket: owner.sockets[0] as WebSocket };
}

/** A client that has opened these streams, and all that it got until each was answered. */
async function answered(...streams: readonly number[]) {
  const client = await nodes.connect();
  const got = heard(client);
  for (const stream of streams) client.send(open(stream));
  await until(() => got.length === streams.length);
  return { client, got, parsed: got.map((text) => JSON.parse(text)) };
}

async function until(isTrue: () => boolean): Promise<void> {
  await expect.poll(isTrue, { interval: 2 }).toBe(true);
}

describe("a stream about a sandbox of another node", () => {
  it("is relayed unchanged and in order, including messages that arrive while it is located", async () => {
    const got = ownerHeard();
    const found = Promise.withResolvers<Location>();
    nodes.find = () => found.promise;
    const client = await nodes.connect();
    const sent = [open(1), credit(1), close(7), credit(1)];
    for (const message of sent) client.send(message);
    client.send(input(1));
    await until(() => nodes.here.length === 1);
    found.resolve({ kind: "node", id: "2", url: owner.url });
    await until(() => got.length === 4);
    client.send(credit(1));
    await until(() => got.length === 5);
    expect(got).toEqual([open(1), credit(1), credit(1), "19 bytes", credit(1)]);
    expect(nodes.here, "messages of other streams").toEqual([close(7)]);
  });

  it("carries the client's credential and the proof of the relaying node", async () => {
    await connected();
    expect(owner.headers[0]).toMatchObject({
      authorization: "Bearer spk_client",
      "x-request-id": "request-1",
      "x-sandpiper-node": expect.stringMatching(/^00000000-0000-4000-8000-000000000001 /),
    });
  });

  it("returns the other node's answers unchanged, text and bytes", async () => {
    const client = await nodes.connect();
    const got = heard(client);
    const answers = [
      '{"type":"opened","stream":1}',
      input(1, new Uint8Array(5)),
      '{"type":"ack","stream":1,"offset":3}',
    ];
    owner.onMessage = (socket) => {
      for (const answer of answers) socket.send(answer);
    };
    client.send(open(1));
    await until(() => got.length === 3);
    expect(got).toEqual([answers[0], "21 bytes", answers[2]]);
  });

  it("shares one connection with other streams to the same node", async () => {
    const third = await nodes.owner();
    const other = createSandboxId();
    nodes.holders.set(other, { kind: "node", id: "3", url: third.url });
    const client = await nodes.connect();
    for (const message of [open(1), open(2), open(3, other)]) client.send(message);
    const got = ownerHeard();
    await until(() => got.length === 2 && third.sockets.length === 1);
    expect(owner.sockets).toHaveLength(1);
  });

  it("is relayed if it is about the sandbox's events", async () => {
    const got = ownerHeard();
    const events = (stream: number, sandbox?: string) =>
      JSON.stringify({ type: "open", stream, kind: "events", after: 0, ...(sandbox && { sandbox }), window: 1 });
    const client = await nodes.connect();
    const [all, gone] = [events(1), events(2, createSandboxId())];
    for (const message of [all, gone, events(3, id)]) client.send(message);
    await until(() => got.length === 1 && nodes.here.length === 2);
    expect([got, nodes.here]).toEqual([[events(3, id)], [all, gone]]);
  });

  it("is served here, in order, if the sandbox turns out to be here or nowhere", async () => {
    const client = await nodes.connect();
    const gone = createSandboxId();
    for (const message of [open(1, gone), credit(1)]) client.send(message);
    client.send(input(1));
    await until(() => nodes.here.length === 3);
    expect(nodes.here).toEqual([open(1, gone), credit(1), "19 bytes"]);
    nodes.holders.set(id, { kind: "here", live: undefined });
    client.send(open(2));
    await until(() => nodes.here.length === 4);
    expect(owner.sockets).toEqual([]);
  });

  it("is located once until its node reports an error", async () => {
    let lookups = 0;
    const { find } = nodes;
    nodes.find = (sandbox) => {
      lookups++;
      return find(sandbox);
    };
    const client = await nodes.connect();
    const got = heard(client);
    owner.onMessage = (socket, data) => {
      const { stream } = JSON.parse(data.toString());
      const error = { code: "unavailable", reason: "handoff_under_way", message: "", retryable: true, requestId: "x" };
      socket.send(JSON.stringify(stream < 3 ? { type: "end", stream } : { type: "error", stream, error }));
    };
    for (const stream of [1, 2, 3]) {
      client.send(open(stream));
      await until(() => got.length === stream);
    }
    expect(lookups).toBe(1);
    client.send(open(4));
    await until(() => got.length === 4);
    expect(lookups).toBe(2);
  });

  it("is no longer relayed once it has ended", async () => {
    owner.onMessage = (socket) => socket.send('{"type":"end","stream":1}');
    const { client } = await answered(1);
    client.send(credit(1));
    await until(() => nodes.here.length === 1);
    expect(nodes.here).toEqual([credit(1)]);
    const passed = ownerHeard();
    for (const message of [open(2), close(2)]) client.send(message);
    await until(() => passed.length === 2);
    client.send(credit(2));
    await until(() => nodes.here.length === 2);
    expect(passed).toEqual([open(2), close(2)]);
  });

  it("fails alone when it cannot be located", async () => {
    nodes.find = async () => {
      throw new SandboxError("store_unreachable", { message: "no store" });
    };
    const { parsed } = await answered(1);
    expect(parsed).toMatchObject([{ type: "error", stream: 1, error: { reason: "store_unreachable" } }]);
  });
});

describe("the node that owns a sandbox", () => {
  it("fails only its own streams if it cannot be reached", async () => {
    await owner.stop();
    const { client, parsed } = await answered(1, 2);
    const error = { code: "unavailable", reason: "owner_unreachable", requestId: "request-1" };
    expect(parsed).toMatchObject([1, 2].map((stream) => ({ type: "error", stream, error })));
    expect(client.readyState).toBe(client.OPEN);
  });

  it.each([
    ["node_stopping", "unavailable", "owner_unreachable"],
    ["bad_credential", "unauthenticated", "bad_credential"],
  ] as const)("fails the stream if it refuses the client with %s", async (reason, code, reported) => {
    owner.refusal = SandboxError.fromFields({ code, reason, message: "no" });
    expect((await answered(1)).parsed).toMatchObject([{ stream: 1, error: { code, reason: reported } }]);
  });

  it.each([
    ["dies", (socket: WebSocket) => socket.terminate(), 1012, LOST],
    ["stops", (socket: WebSocket) => socket.close(1001, "the node is stopping"), 1012, LOST],
    ["expels the client", (socket: WebSocket) => socket.close(1008, "bad_credential"), 1008, "bad_credential"],
  ])("closes the client's connection if it %s, so that the client reconnects", async (_, leave, code, reason) => {
    const client = await nodes.connect();
    owner.onMessage = leave;
    client.send(open(1));
    const [closeCode, closeReason] = await once(client, "close");
    expect([closeCode, String(closeReason)]).toEqual([code, reason]);
  });

  it("may go away while it has no streams, and is connected to again", async () => {
    owner.onMessage = (socket) => socket.send('{"type":"end","stream":1}');
    const { client } = await answered(1);
    owner.sockets[0]?.terminate();
    await once(owner.sockets[0] as WebSocket, "close");
    // By the time the relay answers this ping, it has handled the end of the other connection.
    const ponged = once(client, "pong");
    client.ping();
    await ponged;
    client.send(open(2));
    await until(() => owner.sockets.length === 2);
    expect(client.readyState).toBe(client.OPEN);
  });

  it("is given up if it hangs", async () => {
    const clock = new FakeClock();
    const { client, socket } = await connected({ clock });
    const closed = once(client, "close");
    let isClosed = false;
    closed.then(() => {
      isClosed = true;
    });
    for (let second = 0; second < 5; second++) {
      const pinged = once(socket, "ping");
      await clock.advance(1000);
      await pinged;
      // The answer to this ping proves that the relay has received the pong to its own.
      const answered = once(socket, "pong");
      socket.ping();
      await answered;
    }
    expect(isClosed).toBe(false);
    socket.pause();
    const waitOn = async () => {
      await clock.advance(1000);
      return isClosed;
    };
    await expect.poll(waitOn, { interval: 20 }).toBe(true);
    expect((await closed)[0]).toBe(1012);
  });

  it("is disconnected when the client leaves", async () => {
    const { client, socket } = await connected();
    const left = once(socket, "close");
    client.close();
    await left;
  });
});

describe("back-pressure in the relay", () => {
  it.each([
    ["stops the other node's sending when the client does not read", "socket"],
    ["stops reading from the client when the other node does not read", "client"],
  ] as const)("%s", async (_, sender) => {
    const ends = await connected();
    const [sending, reading] = [ends[sender], ends[sender === "client" ? "socket" : "client"]];
    reading.pause();
    expect(await sentUntilItRests(sending), "of 400").toBeLessThan(200);
    let got = 0;
    reading.on("message", () => got++);
    reading.resume();
    await until(() => got === 400);
    if (sender === "client") expect(nodes.holds).toBeGreaterThan(0);
  });

  it("stops reading from the client when the store does not answer", async () => {
    const got = ownerHeard();
    const found = Promise.withResolvers<Location>();
    nodes.find = () => found.promise;
    const client = await nodes.connect();
    client.send(open(1));
    expect(await sentUntilItRests(client), "of 400").toBeLessThan(200);
    found.resolve({ kind: "node", id: "2", url: owner.url });
    await until(() => got.length === 401);
  });
});

/** Sends 100 MiB in 400 pieces, each after the previous one was sent; returns how many were sent before it stalled. */
async function sentUntilItRests(socket: WebSocket): Promise<number> {
  const piece = input(1, new Uint8Array(256 * 1024));
  let sent = 0;
  const next = () => {
    if (sent === 400) return;
    socket.send(piece, () => {
      sent++;
      next();
    });
  };
  next();
  await untilSettled(() => sent);
  return sent;
}
