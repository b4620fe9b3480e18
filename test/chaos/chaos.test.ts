import { describe, expect, it } from "vitest";
import { runChaos } from "./run-chaos.ts";

describe("nodes, a store and disks that fail under clients who write", () => {
  it.each(["s3", "file"] as const)(
    "never run a sandbox twice, lose nothing that was acknowledged without saying so, and leave nothing (%s)",
    async (store) => {
      const lines: string[] = [];
      const report = await runChaos({ rounds: 4, seed: 5, store, log: (line) => lines.push(line) });
      expect(report.violations, lines.join("\n")).toEqual([]);
      expect(report.counts["acknowledged"]).toBeGreaterThan(0);
      expect(report.counts["seen"]).toBeGreaterThan(0);
    },
    180_000,
  );
});
