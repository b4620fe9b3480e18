import { expect, it } from "vitest";
import { Deadlines } from "./deadlines.ts";

/** Settles when its deadline aborts it. */
const silent = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });

async function miss(lagMs: number) {
  const missed: string[] = [];
  const lag = { totalMs: 0 };
  const deadlines = new Deadlines({ lag, onMissed: (what) => missed.push(what) });
  const request = deadlines.run("a request", 100, silent);
  lag.totalMs = lagMs;
  await expect(request).rejects.toThrow("not answered");
  return { missed, counts: deadlines.counts };
}

it("a request that neither succeeds nor fails before its deadline is reported", async () => {
  const { missed, counts } = await miss(10);
  expect(missed).toEqual([expect.stringContaining("a request: no answer within 100 ms")]);
  expect(counts).toMatchObject({ requests: 1, unanswered: 1, unansweredWhileStarved: 0 });
});

it("a request whose machine had no processor for it is counted apart", async () => {
  const { missed, counts } = await miss(60);
  expect(missed).toEqual([]);
  expect(counts).toMatchObject({ unanswered: 0, unansweredWhileStarved: 1 });
});

it("an answer and a failure before the deadline are both answers", async () => {
  const deadlines = new Deadlines({ lag: { totalMs: 0 }, onMissed: () => {} });
  expect(await deadlines.run("one", 60_000, async () => 1)).toBe(1);
  await expect(deadlines.run("other", 60_000, () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect(deadlines.counts).toMatchObject({ requests: 2, unanswered: 0 });
});
