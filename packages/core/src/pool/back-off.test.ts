import { FakeClock } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { BackOff } from "./back-off.ts";

describe("a back-off", () => {
  it("doubles from the first pause to the longest", () => {
    const backOff = new BackOff(new FakeClock(), { firstMs: 100, mostMs: 1000 });
    const pauses: (number | undefined)[] = [];
    for (let streak = 0; streak < 2000; streak++) {
      backOff.failed(streak);
      pauses.push(backOff.retryInMs);
    }
    expect(pauses.slice(0, 6)).toEqual([100, 200, 400, 800, 1000, 1000]);
    expect(pauses.at(-1)).toBe(1000);
  });

  it("ends after its pause, and forgets its failures only after a success", async () => {
    const clock = new FakeClock();
    const backOff = new BackOff(clock, { firstMs: 100, mostMs: 1000 });
    expect(backOff.retryInMs).toBeUndefined();
    backOff.failed(backOff.streak);
    await clock.advance(100);
    expect(backOff).toMatchObject({ retryInMs: undefined, streak: 1 });
    backOff.succeeded();
    expect(backOff).toMatchObject({ retryInMs: undefined, streak: 0 });
  });

  it("is neither shortened nor restarted by the late failure of an earlier attempt", async () => {
    const clock = new FakeClock();
    const backOff = new BackOff(clock, { firstMs: 100, mostMs: 1000 });
    for (const streak of [0, 1, 2]) backOff.failed(streak);
    await clock.advance(50);
    backOff.failed(0);
    expect(backOff).toMatchObject({ retryInMs: 350, streak: 3 });
  });
});
