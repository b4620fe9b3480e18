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

  it("decodes a character that lies across two chunks", () => {
    const collector = new OutputCollector();
    for (const byte of Buffer.from("grün €")) collector.add("stdout", Uint8Array.of(byte));
    expect(collector.text("stdout")).toBe("grün €");
  });

  it("keeps its bytes when the chunk's buffer is reused", () => {
    const collector = new OutputCollector();
    const piece = Buffer.from("first");
    collector.add("stdout", piece);
    piece.fill("x");
    expect(collector.text("stdout")).toBe("first");
  });

  it("is truncated above 64 MiB, and reports it", () => {
    const collector = new OutputCollector();
    for (let count = 0; count < 64; count++) collector.add(count % 2 === 0 ? "stdout" : "stderr", Buffer.alloc(MIB));
    expect(collector.isTruncated).toBe(false);
    collector.add("stdout", Buffer.from("x"));
    expect(collector.isTruncated).toBe(true);
    expect(collector.text("stdout")).toHaveLength(32 * MIB);
  });
});
