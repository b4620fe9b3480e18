import { MAX_ATTACHMENT_BYTES } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { LentMemory } from "./lent-memory.ts";

const SIZE = 100 * 1024;

function lend(memory: LentMemory, size = SIZE): Uint8Array {
  const piece = memory.offer(size) as Uint8Array;
  memory.take(piece);
  return piece;
}

describe("lent memory", () => {
  it("is reused after it was returned, and not before", () => {
    const memory = new LentMemory(4 * MAX_ATTACHMENT_BYTES);
    const first = lend(memory);
    const second = lend(memory);
    expect(second.buffer).not.toBe(first.buffer);
    memory.giveBack(first);
    expect(lend(memory, 2 * SIZE).buffer).toBe(first.buffer);
    expect(lend(memory).buffer).not.toBe(second.buffer);
  });

  it("is offered again when the chunk did not arrive", () => {
    const memory = new LentMemory(MAX_ATTACHMENT_BYTES);
    const torn = memory.offer(SIZE);
    const piece = memory.offer(SIZE + 1);
    expect(piece?.buffer).toBe(torn?.buffer);
    expect(piece).toHaveLength(SIZE + 1);
  });

  it("is bounded by the window for any sender, and not used for small chunks", () => {
    const memory = new LentMemory(2 * MAX_ATTACHMENT_BYTES);
    for (let k = 0; k < 3; k++) expect(lend(memory)).toBeDefined();
    expect(memory.offer(SIZE)).toBeUndefined();
    expect(new LentMemory(MAX_ATTACHMENT_BYTES).offer(1000)).toBeUndefined();
  });

  it("has buffers of the requested size, and none for larger chunks", () => {
    const memory = new LentMemory(4 * SIZE, SIZE);
    expect(memory.offer(SIZE)?.buffer.byteLength).toBe(SIZE);
    expect(memory.offer(SIZE + 1)).toBeUndefined();
  });

  it("ignores memory that it did not lend", () => {
    const memory = new LentMemory(MAX_ATTACHMENT_BYTES);
    memory.take(new Uint8Array(1));
    memory.giveBack(new Uint8Array(1));
    expect(lend(memory).buffer).not.toBe(lend(memory).buffer);
  });
});
