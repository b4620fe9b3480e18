import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { startGvisorNode } from "./testing/gvisor-node.ts";
import type { SocketNode } from "./testing/socket-node.ts";
import { isFrame } from "./testing/test-client.ts";

let node: SocketNode;
let live: LiveSandbox;
beforeAll(async () => {
  node = await startGvisorNode();
  live = (await node.createSandbox()).live;
});
afterAll(() => node[Symbol.asyncDispose]());

describe("a client on gVisor that often loses its connection", () => {
  it("gets every byte of a command's output exactly once", async () => {
    const expected = Array.from({ length: 200_000 }, (_, n) => `${n + 1}\n`).join("");
    const output: Uint8Array[] = [];
    let offset = 0;
    let connections = 0;
    let exitCode: number | undefined;
    while (exitCode === undefined) {
      const client = node.client("/v1/socket");
      connections++;
      const spawn = { argv: ["seq", "1", "200000"] };
      const open = { type: "open", stream: 1, kind: "process", sandbox: live.id, process: "seq", offset, spawn };
      await client.send({ ...open, window: 256 * 1024 });
      const leaveAt = offset + 100_000;
      while (offset < leaveAt && exitCode === undefined) {
        const message = await client.next();
        if (isFrame(message)) {
          expect(message.offset).toBe(offset);
          output.push(message.bytes);
          offset += message.bytes.length;
          await client.send({ type: "credit", stream: 1, amount: message.bytes.length });
        } else if ("exit" in message) ({ exitCode } = message["exit"] as { readonly exitCode: number });
        else expect(message).toMatchObject({ type: "opened" });
      }
      client.terminate();
    }
    expect(exitCode).toBe(0);
    expect(Buffer.concat(output).toString() === expected).toBe(true);
    expect(connections).toBeGreaterThan(5);
  });

  it("delivers every byte of its input exactly once", async () => {
    const input = Array.from({ length: 50_000 }, (_, n) => `${n}\n`).join("");
    const sum = await live.start({ process: "sum", argv: ["sha256sum"], stdin: true });
    let acknowledged = 0;
    while (acknowledged < input.length) {
      const client = await node.connect({ type: "open", stream: 1, kind: "stdin", sandbox: live.id, process: "sum" });
      await client.next();
      for (let at = acknowledged; at < Math.min(input.length, acknowledged + 100_000); at += 10_000) {
        await client.sendStdin(1, at, input.slice(at, at + 10_000));
      }
      ({ offset: acknowledged } = (await client.next()) as unknown as { readonly offset: number });
      client.terminate();
    }
    const last = await node.connect({ type: "open", stream: 1, kind: "stdin", sandbox: live.id, process: "sum" });
    await last.send({ type: "finish", stream: 1, offset: input.length });
    await last.until((message) => "type" in message && message.type === "end");
    const digest = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(input))).toString("hex");
    expect(Buffer.concat(await Array.fromAsync(sum.stdout)).toString()).toBe(`${digest}  -\n`);
  });

  it("uses a terminal", async () => {
    const client = node.client("/v1/socket");
    const spawn = { argv: ["sh"], pty: { rows: 24, cols: 80 } };
    const open = { type: "open", sandbox: live.id, process: "tty" };
    await client.send({ ...open, stream: 1, kind: "process", offset: 0, window: 65_536, spawn });
    await client.next();
    await client.send({ ...open, stream: 2, kind: "stdin" });
    await client.sendStdin(2, 0, "tty && exit 5\n");
    const messages = await client.until((message) => "exit" in message);
    const frames = messages.filter(isFrame);
    expect(new Set(frames.map(({ source }) => source))).toEqual(new Set(["pty"]));
    expect(Buffer.concat(frames.map(({ bytes }) => bytes)).toString()).toContain("/dev/pts/");
    expect(messages.at(-1)).toMatchObject({ type: "end", stream: 1, exit: { exitCode: 5 } });
  });
});
