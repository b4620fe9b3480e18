import { FakeClock, rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { BodyLimits } from "./body-limits.ts";

function setUp() {
  const clock = new FakeClock();
  const refused: string[] = [];
  const onRefusal = (limit: string) => void refused.push(limit);
  return { clock, refused, limits: new BodyLimits({ budgetBytes: 100, timeoutMs: 1000, clock, onRefusal }) };
}

describe("the memory for bodies", () => {
  it("is limited for each caller and for all, and is free again after the request", () => {
    const { limits, refused } = setUp();
    const first = limits.memory("a");
    first.add(60);
    const second = limits.memory("a");
    expect(() => second.add(60)).toThrow("more than 100 bytes");
    limits.memory("b").add(60);
    first[Symbol.dispose]();
    second.add(60);
    expect(refused).toEqual(["body_budget"]);
  });

  it("has room for one body of any allowed size", () => {
    setUp().limits.memory("a").add(500);
  });
});

describe("a body", () => {
  it("that does not arrive in time fails", async () => {
    const { limits, clock, refused } = setUp();
    const reading = limits.inTime(new Promise(() => {}));
    reading.catch(() => {});
    await clock.advance(1000);
    expect(await rejection(reading)).toMatchObject({ code: "deadline_exceeded", reason: "slow_body" });
    expect(refused).toEqual(["body_deadline"]);
    expect(await limits.inTime(Promise.resolve(1))).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it("may be streamed for any time while it makes progress, however slowly it is consumed", async () => {
    const { limits, clock } = setUp();
    async function* source() {
      for (let k = 0; k < 20; k++) yield new Uint8Array(64 * 1024);
    }
    let count = 0;
    for await (const _ of limits.whileProgressing(source())) {
      await clock.advance(5000);
      count++;
    }
    expect([count, clock.pending]).toEqual([20, 0]);
  });

  it("that trickles into a stream fails", async () => {
    const { limits, clock } = setUp();
    async function* source() {
      for (;;) {
        await new Promise<void>((resolve) => void clock.schedule(300, resolve));
        yield new Uint8Array(1);
      }
    }
    const reading = Array.fromAsync(limits.whileProgressing(source()));
    reading.catch(() => {});
    for (let k = 0; k < 10; k++) await clock.advance(100);
    expect(await rejection(reading)).toMatchObject({ reason: "slow_body" });
  });
});
