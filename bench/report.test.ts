import { describe, expect, it } from "vitest";
import { atLeast, atMost, combine, p50Of, type Result } from "./report.ts";

const results: Result[] = [
  { name: "exec-true", subject: "floor", n: 3, p50: 2, p95: 3, unit: "ms" },
  { name: "exec-true", subject: "docker", n: 3, p50: 60, p95: 70, unit: "ms" },
];

describe("targets", () => {
  it("hold at their limit and not beyond it", () => {
    expect(atMost("time", 1.2, 1.2).holds).toBe(true);
    expect(atMost("time", 1.21, 1.2).holds).toBe(false);
    expect(atLeast("speed", 4, 4).holds).toBe(true);
    expect(atLeast("speed", 3.9, 4).holds).toBe(false);
  });

  it("do not hold without a measurement", () => {
    expect(atMost("time", null, 1.2)).toEqual({ name: "time, at most", measured: null, target: 1.2, holds: false });
    expect(atLeast("speed", null, 4).holds).toBe(false);
  });

  it("are missing if one of their figures is missing", () => {
    const ratio = (left: number, right: number) => left / right;
    expect(combine([p50Of(results, "docker"), p50Of(results, "floor")], ratio)).toBe(30);
    expect(combine([p50Of(results, "docker"), p50Of(results, "absent")], ratio)).toBeNull();
    expect(p50Of(results, "floor", "another benchmark")).toBeNull();
  });
});
