import { describe, expect, it } from "vitest";
import { runChaos } from "./run-chaos.ts";

describe("a cluster whose nodes, instances, store, disks, networks and clocks fail while clients write", () => {
  it.each([
    { store: "s3", providers: ["gvisor", "docker"], seed: 5 },
    { store: "file", providers: ["gvisor"], seed: 6 },
  ] as const)(
    "never runs a sandbox twice, answers every request, reports every loss, and leaves nothing behind ($store)",
    async ({ store, providers, seed }) => {
      const lines: string[] = [];
      const report = await runChaos({ faults: 4, seed, store, providers, log: (line) => lines.push(line) });
      expect(report.violations, lines.join("\n")).toEqual([]);
      expect(report.counts["acknowledged"]).toBeGreaterThan(0);
      expect(report.counts["seen"]).toBeGreaterThan(0);
    },
    180_000,
  );
});
