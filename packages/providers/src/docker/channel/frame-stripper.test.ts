import { describe, expect, it } from "vitest";
import { FrameStripper } from "./frame-stripper.ts";

function frame(kind: number, text: string): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(kind);
  header.writeUInt32BE(text.length, 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

const stream = Buffer.concat([frame(1, "hello "), frame(2, "warning"), frame(1, ""), frame(1, "world")]);

describe("the frames of an attached container", () => {
  it.each([1, 2, 3, 5, 7, 8, 9, 13, stream.length])("are removed from chunks of %i bytes", (size) => {
    const found: Record<number, string> = {};
    const stripper = new FrameStripper((kind, bytes) => {
      found[kind] = `${found[kind] ?? ""}${Buffer.from(bytes).toString()}`;
    });
    for (let at = 0; at < stream.length; at += size) expect(stripper.push(stream.subarray(at, at + size))).toBe(true);
    expect(found).toEqual({ 1: "hello world", 2: "warning" });
  });

  it("are removed without copying the data", () => {
    const pieces: Uint8Array[] = [];
    const stripper = new FrameStripper((_kind, bytes) => pieces.push(bytes));
    stripper.push(stream);
    expect(pieces.every(({ buffer }) => buffer === stream.buffer)).toBe(true);
  });

  it("are reported missing in a stream without them, such as a terminal's", () => {
    const stripper = new FrameStripper(() => {});
    expect(stripper.push(Buffer.from("a plain line\n"))).toBe(false);
  });
});
