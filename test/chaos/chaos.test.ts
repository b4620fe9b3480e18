import { describe, expect, it } from "vitest";
import { runChaos } from "./run-chaos.ts";

describe("a cluster whose nodes, store and disks fail while clients write", () => {
  it.each(["s3", "file"] as const)(
    "never runs a sandbox twice, reports every loss of an acknowledged write, and leaves nothing behind (%s)",
    async (store) => {
      const lines: string[] = [];
      const report = await runChaos({
        faults: 4,
        seed: 5,
        store,
        providers: ["gvisor"],
        log: (line) => lines.push(line),
      });
      expect(report.violations, lines.join("\n")).toEqual([]);
      expect(report.counts["acknowledged"]).toBeGreaterThan(0);
      expect(report.counts["seen"]).toBeGreaterThan(0);
    },
    180_000,
  );
});
