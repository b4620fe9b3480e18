import { describe, expect, it } from "vitest";
import { Random } from "../random.ts";
import { faultsOf, planFaults } from "./fault-plan.ts";

const plan = (seed: number, faults = 100, store: "s3" | "file" = "s3") =>
  planFaults({ faults, store, sandboxes: 4, random: new Random(seed) });

describe("a plan of faults", () => {
  it("is the same for the same seed, and another for another seed", () => {
    expect(plan(7)).toEqual(plan(7));
    expect(plan(7)).not.toEqual(plan(8));
  });

  it("has exactly the wanted number of faults, and never two of one area at the same time", () => {
    const rounds = plan(7);
    expect(rounds.flatMap(({ faults }) => faults)).toHaveLength(100);
    for (const { faults } of rounds) {
      expect(new Set(faults.map(({ fault }) => fault.area)).size).toBe(faults.length);
    }
  });

  it.each(["s3", "file"] as const)("deals every fault about equally often (%s)", (store) => {
    const all = faultsOf(store);
    const dealt = plan(7, all.length * 10, store).flatMap(({ faults }) => faults);
    for (const { kind } of all) {
      const times = dealt.filter(({ fault }) => fault.kind === kind).length;
      expect(Math.abs(times - 10), kind).toBeLessThanOrEqual(2);
    }
  });
});
