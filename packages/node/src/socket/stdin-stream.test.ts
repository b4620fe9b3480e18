import { STDIN_WINDOW_BYTES } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { type SocketNode, startSocketNode } from "./testing/socket-node.ts";

let node: SocketNode;
let live: LiveSandbox;
beforeEach(async () => {
  node = await startSocketNode({ provider: new MockProvider() });
  live = (await node.createSandbox()).live;
});
afterEach(() => node[Symbol.asyncDispose]());

const open = () => ({ type: "open", stream: 1, kind: "stdin", sandbox: live.id, process: "cat" });
const startCat = () => live.start({ process: "cat", argv: ["cat"], stdin: true });
const outputOf = async (process: { readonly stdout: AsyncIterable<Uint8Array> }) =>
  Buffer.concat(await Array.fromAsync(process.stdout)).toString();

describe("a stdin stream", () => {
  it("reports the offset of earlier input, acknowledges new input, and ends the input", async () => {
    const cat = await startCat();
    await cat.write("abc");
    const client = await node.connect(open());
    expect(await client.next()).toEqual({ type: "opened", stream: 1, offset: 3 });
    await client.sendStdin(1, 3, "def");
    expect(await client.next()).toEqual({ type: "ack", stream: 1, offset: 6 });
    await client.sendStdin(1, 6, "ghi");
    await client.send({ type: "finish", stream: 1, offset: 9 });
    expect(await client.take(2)).toEqual([
      { type: "ack", stream: 1, offset: 9 },
      { type: "end", stream: 1 },
    ]);
    expect(await outputOf(cat)).toBe("abcdefghi");
  });

  it("delivers each byte exactly once when clients reconnect and resend unacknowledged input", async () => {
    const cat = await startCat();
    const input = Array.from({ length: 5000 }, (_, n) => `${n}\n`).join("");
    let acknowledged = 0;
    let connections = 0;
    while (acknowledged < input.length) {
      const client = node.client("/v1/socket");
      connections++;
      await client.send(open());
      await client.next();
      // Resends input that has arrived, like a client that has missed acknowledgements.
      for (let at = acknowledged; at < Math.min(input.length, acknowledged + 5000); at += 700) {
        await client.sendStdin(1, at, input.slice(at, at + 700));
      }
      const { offset } = (await client.next()) as unknown as { readonly offset: number };
      acknowledged = offset;
      client.terminate();
    }
    const last = await node.connect(open());
    await last.send({ type: "finish", stream: 1, offset: input.length });
    await last.take(2);
    expect((await outputOf(cat)) === input).toBe(true);
    expect(connections).toBeGreaterThan(2);
  });

  it("accepts input before it answers that it is open", async () => {
    const cat = await startCat();
    const client = await node.connect(open());
    await client.sendStdin(1, 0, "at once");
    await client.send({ type: "finish", stream: 1, offset: 7 });
    expect((await client.take(3)).map((message) => (message as Record<string, unknown>)["type"])).toEqual([
      "opened",
      "ack",
      "end",
    ]);
    expect(await outputOf(cat)).toBe("at once");
  });

  it("refuses input after a gap, and an end after a gap", async () => {
    await startCat();
    const client = await node.connect(open());
    await client.sendStdin(1, 5, "gap");
    await client.next();
    expect(await client.next()).toMatchObject({ type: "error", stream: 1, error: { reason: "stdin_gap" } });
    await client.send({ ...open(), stream: 2 });
    await client.send({ type: "finish", stream: 2, offset: 5 });
    await client.next();
    expect(await client.next()).toMatchObject({ type: "error", stream: 2, error: { reason: "stdin_gap" } });
    expect((await live.process("cat")).stdinOffset).toBe(0);
  });

  it("fails when more input waits than the window allows", async () => {
    await startCat();
    const client = await node.connect(open());
    await client.sendStdin(1, 0, "x".repeat(STDIN_WINDOW_BYTES));
    await client.sendStdin(1, STDIN_WINDOW_BYTES, "x");
    const failed = await client.until((message) => "error" in message);
    expect(failed.at(-1)).toMatchObject({ stream: 1, error: { reason: "stdin_window_exceeded" } });
  });

  it("fails for a process that does not exist or takes no input", async () => {
    const client = await node.connect(open());
    expect(await client.next()).toMatchObject({ type: "error", stream: 1, error: { reason: "no_such_process" } });
    await live.start({ process: "deaf", command: "sleep 60" });
    await client.send({ ...open(), stream: 2, process: "deaf" });
    await client.sendStdin(2, 0, "hello");
    expect((await client.take(2)).at(-1)).toMatchObject({ stream: 2, error: { code: "failed_precondition" } });
  });

  it("is the only kind of stream that accepts input", async () => {
    const client = await node.connect({ type: "open", stream: 1, kind: "events", after: 0, window: 1 });
    await client.sendStdin(1, 0, "hello");
    const messages = await client.until((message) => "error" in message);
    expect(messages.at(-1)).toMatchObject({ stream: 1, error: { reason: "stream_without_input" } });
  });
});
