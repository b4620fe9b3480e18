import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { SandboxError } from "@sandpiper/protocol/error";
import type { PortConnection } from "@sandpiper/sdk";
import { describe, expect, it, onTestFinished } from "vitest";
import { forwardPort } from "./forward-port.ts";

/** A connection whose other end echoes what it gets, and ends when its input has ended. */
function echo(): PortConnection {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const closed = Promise.withResolvers<void>();
  const close = () => {
    writer.abort().catch(() => {});
    closed.resolve();
  };
  return {
    write: (bytes) => writer.write(bytes.slice()),
    end: () => writer.close(),
    close,
    closed: closed.promise,
    [Symbol.asyncIterator]: () => readable.values(),
    async [Symbol.asyncDispose]() {
      close();
    },
  };
}

async function setUp(open: (port: number) => Promise<PortConnection>) {
  const notices: string[] = [];
  const controller = new AbortController();
  const forwarding = await forwardPort({
    port: 5432,
    localPort: 0,
    signal: controller.signal,
    notice: (message) => notices.push(message),
    sandbox: { id: "0" as never, connect: (port) => open(port) },
  });
  onTestFinished(() => forwarding[Symbol.dispose]());
  const dial = (): Socket => connect({ port: forwarding.localPort, host: "127.0.0.1", allowHalfOpen: true });
  return { forwarding, notices, dial };
}

describe("a forwarded port", () => {
  it("carries several connections at once, and each direction ends alone", async () => {
    const ports: number[] = [];
    const { dial, forwarding } = await setUp(async (port) => {
      ports.push(port);
      return echo();
    });
    expect(forwarding.address).toBe(`127.0.0.1:${forwarding.localPort}`);
    const talk = async (text: string) => {
      const socket = dial();
      socket.end(text);
      return Buffer.concat(await socket.toArray()).toString();
    };
    const texts = ["one", "two".repeat(200_000), "three"];
    expect(await Promise.all(texts.map(talk))).toEqual(texts);
    expect(ports).toEqual([5432, 5432, 5432]);
  });

  it("resets a client whose connection fails, reports why, and serves the next one", async () => {
    let count = 0;
    const { dial, notices } = await setUp(async () => {
      if (count++ === 0) throw new SandboxError("connection_refused", { message: "nothing listens on port 5432" });
      return echo();
    });
    const refused = dial();
    const [error] = await once(refused, "error");
    expect(error).toMatchObject({ code: "ECONNRESET" });
    expect(notices).toEqual(["connection to port 5432 failed: nothing listens on port 5432"]);
    const socket = dial();
    socket.end("again");
    expect(Buffer.concat(await socket.toArray()).toString()).toBe("again");
  });

  it("says how to choose another port if the local one is in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await once(other, "listening");
    const { port: localPort } = other.address() as { port: number };
    const sandbox = { id: "0" as never, connect: async () => echo() };
    const options = { port: 1, localPort, sandbox, notice: () => {}, signal: new AbortController().signal };
    await expect(forwardPort(options)).rejects.toMatchObject({
      reason: "port_in_use",
      hint: expect.stringContaining("PORT:LOCAL"),
    });
  });
});
