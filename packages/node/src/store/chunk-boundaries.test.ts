import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { cutPages, PAGE_BYTES } from "./chunk-boundaries.ts";

describe("cutting pages into chunks", () => {
  const pages = Array.from({ length: 4000 }, (_, index) => randomPage(index));

  it("covers every page once, in order, with chunks of 128 KiB to 1 MiB and nearly 512 KiB on average", () => {
    const pieces = cutPages(wordsOf(pages), true);
    expect(pieces[0]?.start).toBe(0);
    expect(pieces.at(-1)?.end).toBe(pages.length);
    for (const [index, { start, end }] of pieces.entries()) {
      expect(start).toBe(index === 0 ? 0 : pieces[index - 1]?.end);
      expect(end - start).toBeLessThanOrEqual(256);
      if (index < pieces.length - 1) expect(end - start).toBeGreaterThanOrEqual(32);
    }
    expect(pages.length / pieces.length).toBeGreaterThan(90);
    expect(pages.length / pieces.length).toBeLessThan(128);
  });

  it.each([0, 1, 777, 3999])("keeps nearly all chunks when a page is inserted at %d", (at) => {
    const before = chunksOf(pages);
    const after = chunksOf(pages.toSpliced(at, 0, randomPage(99_999)));
    const changed = [...after].filter((chunk) => !before.has(chunk));
    expect(changed.length).toBeLessThanOrEqual(3);
  });

  it("keeps nearly all chunks when a page is removed or overwritten", () => {
    const before = chunksOf(pages);
    const shorter = chunksOf(pages.toSpliced(1234, 1));
    const other = chunksOf(pages.with(2000, randomPage(88_888)));
    expect([...shorter].filter((chunk) => !before.has(chunk)).length).toBeLessThanOrEqual(3);
    expect([...other].filter((chunk) => !before.has(chunk)).length).toBeLessThanOrEqual(3);
  });

  it("makes the same cuts regardless of where a buffer ends", () => {
    const whole = cutPages(wordsOf(pages), true);
    const first = cutPages(wordsOf(pages.slice(0, 1024)), false);
    expect(first).toEqual(whole.slice(0, first.length));
    const end = first.at(-1)?.end ?? 0;
    expect(end).toBeGreaterThan(1024 - 256);
    const rest = cutPages(wordsOf(pages.slice(end)), true);
    expect(rest.map((piece) => piece.end + end)).toEqual(whole.slice(first.length).map((piece) => piece.end));
  });

  it("omits long runs of zeros and keeps short ones", () => {
    const zeros = (count: number) => Array.from({ length: count }, () => Buffer.alloc(PAGE_BYTES));
    const some = pages.slice(0, 20);
    const pieces = cutPages(wordsOf([...zeros(100), ...some, ...zeros(3), ...some, ...zeros(5000)]), true);
    const holes = pieces.filter(({ isHole }) => isHole);
    expect(holes).toEqual([
      { start: 0, end: 100, isHole: true },
      { start: 143, end: 5143, isHole: true },
    ]);
    expect(pieces.at(-1)?.end).toBe(5143);
  });

  it("treats a page as empty only if all of its bytes are zero", () => {
    const almost = Array.from({ length: 100 }, () => {
      const page = Buffer.alloc(PAGE_BYTES);
      page[PAGE_BYTES - 1] = 1;
      return page;
    });
    expect(cutPages(wordsOf(almost), true).some(({ isHole }) => isHole)).toBe(false);
  });
});

function randomPage(seed: number): Buffer {
  const digest = createHash("sha256").update(`page ${seed}`).digest();
  return Buffer.concat(
    Array.from({ length: PAGE_BYTES / 32 }, (_, index) =>
      Buffer.concat([digest.subarray(index % 32), digest.subarray(0, index % 32)]),
    ),
  );
}

function wordsOf(pages: readonly Buffer[]): Uint32Array {
  return new Uint32Array(new Uint8Array(Buffer.concat(pages)).buffer);
}

function chunksOf(pages: readonly Buffer[]): Set<string> {
  return new Set(
    cutPages(wordsOf(pages), true).map(({ start, end }) =>
      createHash("sha256")
        .update(Buffer.concat(pages.slice(start, end)))
        .digest("hex"),
    ),
  );
}
