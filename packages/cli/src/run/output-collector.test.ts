import { describe, expect, it } from "vitest";
import { OutputCollector } from "./output-collector.ts";

const MIB = 1024 ** 2;

describe("collected output", () => {
  it("keeps stdout and stderr apart, each in its order", () => {
    const collector = new OutputCollector();
    collector.add("stdout", Buffer.from("a"));
    collector.add("stderr", Buffer.from("x"));
    collector.add("stdout", Buffer.from("b"));
    expect([collector.text("stdout"), collector.text("stderr")]).toEqual(["ab", "x"]);
  });

  it("is decoded as a whole: a character may lie across two pieces", () => {
    const collector = new OutputCollector();
    for (const byte of Buffer.from("grün €")) collector.add("stdout", Uint8Array.of(byte));
    expect(collector.text("stdout")).toBe("grün €");
  });

  it("keeps its bytes though the piece's buffer is used again", () => {
    const collector = new OutputCollector();
    const piece = Buffer.from("first");
    collector.add("stdout", piece);
    piece.fill("x");
    expect(collector.text("stdout")).toBe("first");
  });

  it("is refused, not cut, beyond what one object holds", () => {
    const collector = new OutputCollector();
    for (let count = 0; count < 64; count++) collector.add(count % 2 === 0 ? "stdout" : "stderr", Buffer.alloc(MIB));
    expect(() => collector.add("stdout", Buffer.from("x"))).toThrow("more than the 64 MiB");
  });
});
