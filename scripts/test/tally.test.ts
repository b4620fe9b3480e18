import { describe, expect, it } from "vitest";
import { countFailures, formatTally, sumTallies } from "./tally.ts";

const clean = { passed: 3, failures: [], skips: [], faults: [] };

describe("a tally", () => {
  it("lists skips and failures, and ends with the totals of all runners alone on the last line", () => {
    const other = {
      ...clean,
      failures: [{ test: "a.test.ts > forks", message: "expected 1 to be 2\n\nand much more" }],
      skips: [{ test: "adopts", reason: "local cannot adopt" }],
    };
    expect(formatTally(sumTallies([clean, other])).split("\n")).toEqual([
      "skipped: adopts (local cannot adopt)",
      "failed: a.test.ts > forks: expected 1 to be 2",
      "6 passed, 1 failed, 1 skipped",
    ]);
  });

  it("counts a skip without a reason as a failure", () => {
    const tally = { ...clean, skips: [{ test: "adopts", reason: undefined }] };
    expect(countFailures(tally)).toBe(1);
    expect(formatTally(tally)).toBe("skipped without a reason: adopts\n3 passed, 1 failed, 0 skipped");
  });

  it("counts a failure outside a test as a failed test", () => {
    expect(countFailures({ ...clean, faults: ["cargo test ended with 101"] })).toBe(1);
  });
});
