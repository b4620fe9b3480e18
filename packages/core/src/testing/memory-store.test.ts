import { FakeClock, rejection, settle } from "@sandpiper/protocol/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemoryStore } from "./memory-store.ts";
import { describeStore } from "./store-contract.ts";

const shared = new MemoryStore();
describeStore("memory", () => shared, { framework: { describe, it, beforeAll, afterAll, expect } });

describe("MemoryStore with faults", () => {
  const bytes = Uint8Array.of(1);

  it("fails the named call, before or after it took effect", async () => {
    const store = new MemoryStore({
      fault: ({ number }) => (number === 1 ? { fail: "before" } : number === 3 ? { fail: "after" } : undefined),
    });
    expect((await rejection(store.put("a", bytes))).code).toBe("unavailable");
    expect(await store.get("a")).toBe(undefined);
    expect((await rejection(store.put("a", bytes))).code).toBe("unavailable");
    expect((await store.get("a"))?.size).toBe(1);
  });

  it("delays a call by its own clock, before the effect and before the answer", async () => {
    const clock = new FakeClock();
    const store = new MemoryStore({
      clock,
      fault: ({ operation }) => (operation === "put" ? { delayMs: 10, answerDelayMs: 10 } : undefined),
    });
    let tag: string | undefined;
    void store.put("a", bytes).then((given) => {
      tag = given;
    });
    await settle();
    expect(await store.head("a")).toBe(undefined);
    await clock.advance(10);
    expect((await store.head("a"))?.size).toBe(1);
    expect(tag).toBe(undefined);
    await clock.advance(10);
    expect(tag).toBe((await store.head("a"))?.tag);
  });
});
