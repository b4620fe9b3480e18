import { describe, expect, it } from "vitest";
import { concurrently } from "./concurrently.ts";

describe("concurrent work", () => {
  it("covers every item, at most the limit at a time", async () => {
    const done: number[] = [];
    let running = 0;
    let mostRunning = 0;
    await concurrently(3, [1, 2, 3, 4, 5, 6, 7], async (item) => {
      running += 1;
      mostRunning = Math.max(mostRunning, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      done.push(item);
    });
    expect(done.sort()).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(mostRunning).toBe(3);
  });

  it("stops at the first failure and starts no further item", async () => {
    const begun: number[] = [];
    const work = concurrently(2, [1, 2, 3, 4, 5, 6], async (item) => {
      begun.push(item);
      await new Promise((resolve) => setImmediate(resolve));
      if (item === 2) throw new Error("item 2");
    });
    await expect(work).rejects.toThrow("item 2");
    // Each item takes one turn of the event loop, so all of them could have begun by now.
    for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(begun.length).toBeLessThan(6);
  });
});
