import { describe, expect, it } from "vitest";
import { countFailures, formatTally, sumTallies } from "./tally.ts";

const clean = { passed: 3, failed: 0, skips: [], faults: [] };

describe("a tally", () => {
  it("ends with the totals over all runners, alone on the last line", () => {
    const other = { ...clean, failed: 1, skips: [{ test: "adopts", reason: "local cannot adopt" }] };
    expect(formatTally(sumTallies([clean, other])).split("\n")).toEqual([
      "skipped: adopts (local cannot adopt)",
      "6 passed, 1 failed, 1 skipped",
    ]);
  });

  it("counts a skip without a reason as a failure", () => {
    const tally = { ...clean, skips: [{ test: "adopts", reason: undefined }] };
    expect(countFailures(tally)).toBe(1);
    expect(formatTally(tally)).toBe("skipped without a reason: adopts\n3 passed, 1 failed, 0 skipped");
  });

  it("counts what went wrong outside a test as a failure", () => {
    expect(countFailures({ ...clean, faults: ["cargo test ended with 101"] })).toBe(1);
  });
});
