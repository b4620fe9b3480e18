import { describe, expect, it } from "vitest";
import { mean, percentile, summarize } from "./statistics.ts";

describe("statistics", () => {
  it("returns measured values as percentiles, for any order of samples", () => {
    const samples = [9, 1, 8, 2, 7, 3, 6, 4, 5, 10];
    expect(percentile(samples, 50)).toBe(5);
    expect(percentile(samples, 95)).toBe(10);
    expect(percentile(samples, 10)).toBe(1);
    expect(samples[0]).toBe(9);
  });

  it("sorts by value, not by text", () => {
    expect(percentile([100, 9, 20], 50)).toBe(20);
  });

  it("summarizes a single sample as itself", () => {
    expect(summarize([4.5])).toEqual({ n: 1, p50: 4.5, p95: 4.5 });
  });

  it("refuses to summarize an empty list", () => {
    expect(() => summarize([])).toThrow("no samples");
    expect(() => mean([])).toThrow("no samples");
  });
});
