import type { BenchmarkContext } from "./benchmark.ts";
import { type Contestant, type Measured, measure } from "./interleave.ts";
import type { Subject } from "./subject.ts";

/** Takes one or more samples; undefined if the subject does not support the operation. */
type Operation = (subject: Subject, count: number) => Promise<number | number[] | undefined> | undefined;

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
  return (subject, count) => subject.execTrue?.(count, restMs);
}

/** Measures operations on several subjects, interleaved, in milliseconds. */
export async function compare(
  context: BenchmarkContext,
  { name, rounds, entries }: { readonly name: string; readonly rounds: number; readonly entries: readonly Entry[] },
): Promise<Measured> {
  const problems: string[] = [];
  const contestants: Contestant[] = [];
  for (const { subject, label = subject, perRound, operation } of entries) {
    context.signal.throwIfAborted();
    context.progress(`opening ${subject}`);
    try {
      const opened = await context.openSubject(subject);
      const sample = async (count: number) => {
        const taken = await operation(opened, count);
        if (taken === undefined) throw new Error("the subject does not support this operation");
        return [taken].flat();
      };
      contestants.push({ subject: label, perRound, sample });
    } catch (error) {
      problems.push(`${name}, ${label}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const measured = await measure(contestants, { name, rounds, context });
  return { ...measured, problems: [...problems, ...measured.problems] };
}
