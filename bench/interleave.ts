import type { BenchmarkContext } from "./benchmark.ts";

/** Takes `count` samples sequentially. */
export interface Contestant<Sample = number> {
  readonly subject: string;
  /** Samples per round; fast operations take more. */
  readonly perRound: number;
  sample(count: number): Promise<Sample[]>;
}

export interface Rounds<Sample = number> {
  readonly samples: ReadonlyMap<string, readonly Sample[]>;
  readonly problems: readonly string[];
}

/**
 * Alternates, A B C A B C …, so that other load on the machine affects all contestants equally. The first round is a
 * warm-up and does not count. A failing contestant is reported and dropped.
 */
export async function interleave<Sample = number>(
  contestants: readonly Contestant<Sample>[],
  options: { readonly rounds: number; readonly context: BenchmarkContext },
): Promise<Rounds<Sample>> {
  const { rounds, context } = options;
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
