import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { AttachChannel } from "./attach-channel.ts";

/** A stream whose other side is the test. */
class Attached extends Duplex {
  readonly written: Buffer[] = [];
  #release: (() => void) | undefined;

  constructor() {
    super({ writableHighWaterMark: 10 });
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written.push(chunk);
    this.#release = done;
  }

  /** Accepts the pending write. */
  drain(): void {
    this.#release?.();
  }
}

function open() {
  const stream = new Attached();
  const lost: string[] = [];
  const received: string[] = [];
  const closed: (Error | undefined)[] = [];
  const channel = new AttachChannel({ stream, onLost: () => lost.push("lost") });
  channel.open({
    data: (chunk) => void received.push(Buffer.from(chunk).toString()),
    closed: (cause) => closed.push(cause),
  });
  return { stream, channel, lost, received, closed };
}

const frame = (kind: number, text: string) =>
  Buffer.concat([Buffer.from([kind, 0, 0, 0, 0, 0, 0, text.length]), Buffer.from(text)]);
const nextTick = () => new Promise((resolve) => setImmediate(resolve));

describe("a channel over an attached container", () => {
  it("passes the agent's standard output to the receiver, and keeps its standard error", async () => {
    const { stream, channel, received } = open();
    stream.push(frame(1, "answer"));
    stream.push(frame(2, "a warning"));
    await nextTick();
    expect(received).toEqual(["answer"]);
    expect(channel.stderrTail).toBe("a warning");
  });

  it("makes a writer wait until the engine has accepted the data", async () => {
    const { stream, channel } = open();
    expect(channel.write([Buffer.from("short")])).toBeUndefined();
    const waiting = channel.write([Buffer.from("something "), Buffer.from("longer")]);
    expect(waiting).toBeInstanceOf(Promise);
    for (let round = 0; round < 3; round++) {
      stream.drain();
      await nextTick();
    }
    await waiting;
    expect(Buffer.concat(stream.written).toString()).toBe("shortsomething longer");
  });

  it("reports its loss once when the engine ends the stream", async () => {
    const { stream, channel, lost, closed } = open();
    stream.push(null);
    await nextTick();
    channel.close();
    expect([lost, closed.length, closed[0]?.message]).toEqual([["lost"], 1, "the engine ended the stream"]);
    expect(channel.write([Buffer.from("x")])).toBeUndefined();
  });

  it("reports no loss when this side closes it", async () => {
    const { stream, channel, lost, closed } = open();
    channel.close();
    await nextTick();
    expect([lost, closed, stream.destroyed]).toEqual([[], [undefined], true]);
  });

  it("closes when the engine sends data without frames", async () => {
    const { stream, closed } = open();
    stream.push("plain text of a terminal");
    await nextTick();
    expect(closed[0]?.message).toContain("without stream frames");
  });
});
