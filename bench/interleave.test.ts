import { describe, expect, it } from "vitest";
import type { BenchmarkContext } from "./benchmark.ts";
import { interleave } from "./interleave.ts";

function contextWith(signal = new AbortController().signal): BenchmarkContext {
  return { signal, progress: () => undefined } as unknown as BenchmarkContext;
}

describe("interleave", () => {
  it("alternates between contestants and does not count the first round", async () => {
    const turns: string[] = [];
    const contestant = (subject: string, perRound: number) => ({
      subject,
      perRound,
      sample: async (count: number) => {
        turns.push(subject);
        return Array.from({ length: count }, () => turns.length);
      },
    });
    const contestants = [contestant("a", 2), contestant("b", 1)];
    const { samples, problems } = await interleave(contestants, { rounds: 2, context: contextWith() });
    expect(turns).toEqual(["a", "b", "a", "b", "a", "b"]);
    expect(samples.get("a")).toEqual([3, 3, 5, 5]);
    expect(samples.get("b")).toEqual([4, 6]);
    expect(problems).toEqual([]);
  });

  it("reports a failing contestant, drops its samples and continues with the others", async () => {
    let calls = 0;
    const failing = async () => {
      calls += 1;
      if (calls === 3) throw new Error("no such sandbox");
      return [1];
    };
    const contestants = [
      { subject: "failing", perRound: 1, sample: failing },
      { subject: "sound", perRound: 1, sample: async () => [7] },
    ];
    const { samples, problems } = await interleave(contestants, { rounds: 5, context: contextWith() });
    expect(problems).toEqual(["failing: no such sandbox"]);
    expect(samples.has("failing")).toBe(false);
    expect(samples.get("sound")).toEqual([7, 7, 7, 7, 7]);
    expect(calls).toBe(3);
  });

  it("stops when interrupted", async () => {
    const interruption = new AbortController();
    const sample = async () => {
      interruption.abort(new Error("interrupted"));
      return [1];
    };
    const rounds = interleave([{ subject: "a", perRound: 1, sample }], {
      rounds: 5,
      context: contextWith(interruption.signal),
    });
    await expect(rounds).rejects.toThrow("interrupted");
  });
});
