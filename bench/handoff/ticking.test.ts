import { describe, expect, it } from "vitest";
import { longestGap } from "./ticking.ts";

describe("longestGap", () => {
  it("finds the longest time without an arrival", () => {
    expect(longestGap([0, 2, 4, 104, 106], 3)).toBe(100);
  });

  it("counts a gap that began before the instant, but not one that ended before it", () => {
    expect(longestGap([0, 500, 502, 602, 604], 503)).toBe(100);
    expect(longestGap([0, 500, 502, 504], 501)).toBe(2);
  });

  it("finds none in fewer than two arrivals", () => {
    expect(longestGap([], 0)).toBe(0);
    expect(longestGap([7], 0)).toBe(0);
  });
});
