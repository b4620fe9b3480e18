import type { BenchmarkContext } from "./benchmark.ts";
import { type Contestant, interleave } from "./interleave.ts";
import { type Report, resultOf } from "./report.ts";
import type { Subject } from "./subject.ts";

/** An operation of a subject that returns one or more samples; undefined if the subject does not support it. */
type Operation = (subject: Subject) => ((count: number) => Promise<number | number[]>) | undefined;

export interface Entry {
  readonly subject: string;
  /** Name in the report, if not the subject's. */
  readonly label?: string;
  /** Samples per round. */
  readonly perRound: number;
  readonly operation: Operation;
}

/** The same operation on several subjects, each with its samples per round. */
export function entriesOf(perRound: Readonly<Record<string, number>>, operation: Operation): Entry[] {
  return Object.entries(perRound).map(([subject, count]) => ({ subject, perRound: count, operation }));
}

/** Runs a static `true`, each time after a pause. */
export function execTrue(restMs: number): Operation {
  return (subject) => {
    const run = subject.execTrue?.bind(subject);
    return run && ((count) => run(count, restMs));
  };
}

/** Measures operations on several subjects, interleaved, in milliseconds. */
export async function compare(
  context: BenchmarkContext,
  { name, rounds, entries }: { readonly name: string; readonly rounds: number; readonly entries: readonly Entry[] },
): Promise<Pick<Report, "results" | "problems">> {
  const problems: string[] = [];
  const contestants: Contestant[] = [];
  for (const { subject, label = subject, perRound, operation } of entries) {
    context.signal.throwIfAborted();
    context.progress(`opening ${subject}`);
    try {
      const sample = operation(await context.subjects.open(subject));
      if (sample === undefined) throw new Error("the subject does not support this operation");
      contestants.push({ subject: label, perRound, sample: async (count) => [await sample(count)].flat() });
    } catch (error) {
      problems.push(`${label}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const measured = await interleave(contestants, { rounds, context });
  const results = [...measured.samples].map(([subject, samples]) => resultOf(name, subject, samples));
  return { results, problems: [...problems, ...measured.problems].map((problem) => `${name}, ${problem}`) };
}
