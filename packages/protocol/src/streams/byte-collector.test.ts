import { describe, expect, it } from "vitest";
import { ByteCollector } from "./byte-collector.ts";

describe("collected bytes", () => {
  it.each([[[1]], [[1, 20_000]], [[65_536, 1, 1, 1]], [[3, 16_383, 16_384]]])("are whole for chunks of %j", (sizes) => {
    const collector = new ByteCollector();
    const expected: number[] = [];
    for (let index = 0; index < 400; index++) {
      const bytes = new Uint8Array(sizes[index % sizes.length] ?? 1).fill(index % 256);
      collector.add(bytes);
      for (const byte of bytes) expected.push(byte);
    }
    expect(collector.byteLength).toBe(expected.length);
    expect(Buffer.from(collector.bytes()).equals(Buffer.from(expected))).toBe(true);
  });

  it.each([0, 1, 1000, 30_000, 100_000])("are whole when %d were expected and 30,000 came", (expectedBytes) => {
    const collector = new ByteCollector(expectedBytes);
    const bytes = Uint8Array.from({ length: 30_000 }, (_, index) => index % 251);
    for (let at = 0; at < bytes.length; at += 700) collector.add(bytes.subarray(at, at + 700));
    expect(Buffer.from(collector.bytes()).equals(bytes)).toBe(true);
  });

  it("are decoded as a whole, so that a character may span chunks of any size", () => {
    const text = "\ufeffé€😀".repeat(2000);
    const bytes = new TextEncoder().encode(text);
    for (const size of [1, 2, 3, 5, 1000]) {
      const collector = new ByteCollector();
      for (let at = 0; at < bytes.length; at += size) collector.add(bytes.subarray(at, at + size));
      expect(collector.text() === text).toBe(true);
    }
  });

  it("show invalid UTF-8 as replacement characters", () => {
    const collector = new ByteCollector();
    collector.add(Uint8Array.of(0x61, 0xff, 0xc3));
    expect(collector.text()).toBe("a\ufffd\ufffd");
  });
});
