import type { BenchmarkContext } from "./benchmark.ts";
import { type Contestant, interleave } from "./interleave.ts";
import type { Report, Result } from "./report.ts";
import { summarize } from "./statistics.ts";
import type { Subject } from "./subject.ts";

/** An operation of a subject that gives one sample, or many at once. */
type Operation = (subject: Subject) => ((count: number) => Promise<number | number[]>) | undefined;

export interface Comparison {
  readonly name: string;
  /** The subjects that take part, and how many samples each takes in a round. */
  readonly perRound: Readonly<Record<string, number>>;
  readonly rounds: number;
  readonly operation: Operation;
}

/** Measures one operation on several subjects, interleaved, in milliseconds. */
export async function compare(
  context: BenchmarkContext,
  comparison: Comparison,
): Promise<Pick<Report, "results" | "problems">> {
  const problems: string[] = [];
  const contestants: Contestant[] = [];
  for (const [subject, perRound] of Object.entries(comparison.perRound)) {
    context.signal.throwIfAborted();
    context.progress(`opening ${subject}`);
    try {
      const sample = comparison.operation(await context.subjects.open(subject));
      if (sample === undefined) throw new Error(`the subject has no such operation`);
      contestants.push({ subject, perRound, sample: async (count) => [await sample(count)].flat() });
    } catch (error) {
      problems.push(`${comparison.name}, ${subject}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const measured = await interleave(contestants, { rounds: comparison.rounds, context });
  const results: Result[] = [...measured.samples].map(([subject, samples]) => {
    return { name: comparison.name, subject, ...summarize(samples), unit: "ms" };
  });
  return { results, problems: [...problems, ...measured.problems.map((problem) => `${comparison.name}, ${problem}`)] };
}
