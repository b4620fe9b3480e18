import { describe, expect, it } from "vitest";
import { isForegroundJob } from "./stdin.ts";

const stat = (processGroup: number, foregroundGroup: number) =>
  `812 (a ) name (x) S 800 ${processGroup} 800 34816 ${foregroundGroup} 4194304 1 2 3`;

describe("a job of a terminal", () => {
  it("is in the foreground when the terminal's input is its own", () => {
    expect(isForegroundJob(stat(812, 812))).toBe(true);
  });

  it("is in the background when another job has the terminal", () => {
    expect(isForegroundJob(stat(812, 799))).toBe(false);
  });
});
