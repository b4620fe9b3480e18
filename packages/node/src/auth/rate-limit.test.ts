import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { RateLimit, type RateLimitOptions } from "./rate-limit.ts";

function setUp(options: Partial<RateLimitOptions> = {}) {
  const clock = new FakeClock();
  const refused: string[] = [];
  const limit = new RateLimit({
    name: "key",
    perSecond: 2,
    burst: 4,
    clock,
    onRefusal: (name) => refused.push(name),
    ...options,
  });
  const taken = (caller: string, count: number) => {
    let accepted = 0;
    for (let k = 0; k < count; k++) {
      try {
        limit.take(caller);
        accepted++;
      } catch {
        // Counted by onRefusal.
      }
    }
    return accepted;
  };
  return { clock, limit, refused, taken };
}

describe("a rate limit", () => {
  it("allows a burst, then a steady rate, for each caller", async () => {
    const { clock, taken, refused } = setUp();
    expect(taken("a", 10)).toBe(4);
    expect(refused).toHaveLength(6);
    expect(taken("b", 10)).toBe(4);
    await clock.advance(1000);
    expect(taken("a", 10)).toBe(2);
    await clock.advance(3_600_000);
    expect(taken("a", 10)).toBe(4);
  });

  it("says when to retry, and then accepts", async () => {
    const { clock, limit, taken } = setUp();
    taken("a", 4);
    let error: unknown;
    try {
      limit.take("a");
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({
      code: "resource_exhausted",
      reason: "rate_limited",
      details: { limit: "key", retryAfterMs: 500 },
    });
    await clock.advance(500);
    limit.take("a");
  });

  it("counts what a caller spends beyond its limit", async () => {
    const { clock, limit } = setUp();
    for (let k = 0; k < 8; k++) limit.spend("a");
    await clock.advance(2000);
    expect(() => limit.check("a")).toThrow();
    await clock.advance(500);
    limit.check("a");
  });

  it("of 0 is none", () => {
    expect(setUp({ perSecond: 0, burst: 0 }).taken("a", 1000)).toBe(1000);
  });
});
