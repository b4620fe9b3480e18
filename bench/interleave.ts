import { setTimeout as sleep } from "node:timers/promises";
import type { BenchmarkContext } from "./benchmark.ts";
import { type Report, resultOf } from "./report.ts";

/** Takes `count` samples sequentially. */
export interface Contestant<Sample = number> {
  readonly subject: string;
  /** Samples per round; fast operations take more. */
  readonly perRound: number;
  sample(count: number): Promise<Sample[]>;
}

interface RoundsOptions {
  readonly rounds: number;
  readonly context: BenchmarkContext;
}

interface Rounds<Sample = number> {
  readonly samples: ReadonlyMap<string, readonly Sample[]>;
  readonly problems: readonly string[];
}

/**
 * Alternates, A B C A B C …, so that other load on the machine affects all contestants equally. The first round is a
 * warm-up and does not count. A failing contestant is reported and dropped.
 */
export async function interleave<Sample = number>(
  contestants: readonly Contestant<Sample>[],
  { rounds, context }: RoundsOptions,
): Promise<Rounds<Sample>> {
  const samples = new Map<string, Sample[]>();
  const problems: string[] = [];
  const failed = new Set<string>();
  for (let round = 0; round <= rounds; round++) {
    context.progress(round === 0 ? "warming up" : `round ${round} of ${rounds}`);
    for (const { subject, perRound, sample } of contestants) {
      context.signal.throwIfAborted();
      if (failed.has(subject)) continue;
      try {
        const taken = await sample(perRound);
        if (round > 0) samples.set(subject, [...(samples.get(subject) ?? []), ...taken]);
      } catch (error) {
        failed.add(subject);
        samples.delete(subject);
        problems.push(`${subject}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
  return { samples, problems };
}

/** Contestants that take one sample a round, each after a pause. */
export function onePerRound<Sample>(
  turns: Readonly<Record<string, () => Promise<Sample>>>,
  restMs = 0,
): Contestant<Sample>[] {
  return Object.entries(turns).map(([subject, turn]) => ({
    subject,
    perRound: 1,
    sample: async () => {
      if (restMs > 0) await sleep(restMs);
      return [await turn()];
    },
  }));
}

export type Measured = Pick<Report, "results" | "problems">;

/** Interleaves contestants and reports their samples under one name. */
export async function measure(
  contestants: readonly Contestant[],
  { name, ...options }: RoundsOptions & { readonly name: string },
): Promise<Measured> {
  const { samples, problems } = await interleave(contestants, options);
  return {
    results: [...samples].map(([subject, taken]) => resultOf(name, subject, taken)),
    problems: problems.map((problem) => `${name}, ${problem}`),
  };
}
