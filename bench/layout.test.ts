import { describe, expect, it } from "vitest";
import { formatFigure, groupResults } from "./layout.ts";

describe("layout", () => {
  it("shows three significant digits", () => {
    expect([0, 0.01234, 0.1234, 1.234, 12.34, 123.4, 1234.5].map(formatFigure)).toEqual([
      "0",
      "0.0123",
      "0.123",
      "1.23",
      "12.3",
      "123",
      "1235",
    ]);
  });

  it("puts our own row first and shows the others as multiples of it", () => {
    const [group] = groupResults([
      { name: "exec-true", subject: "docker", n: 3, p50: 60, p95: 70, unit: "ms" },
      { name: "exec-true", subject: "sandpiper-gvisor", n: 30, p50: 2, p95: 3, unit: "ms" },
    ]);
    expect(group?.rows.map((row) => [row.subject, row.p50, row.ratio])).toEqual([
      ["sandpiper-gvisor", "2.00 ms", "1.00×"],
      ["docker", "60.0 ms", "30.0×"],
    ]);
  });
});
