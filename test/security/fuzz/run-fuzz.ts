import fc from "fast-check";
import type { Holdings } from "./fuzz-node-program.ts";

/** An interface that receives malformed input. */
export interface FuzzTarget<Input> {
  readonly inputs: fc.Arbitrary<Input>;
  /** Sends one input. Resolves to a word for its outcome; rejects if the outcome is not allowed. */
  readonly send: (input: Input) => Promise<string>;
  readonly holdings: () => Promise<Holdings>;
  /** Rejects if an ordinary use of the interface fails. */
  readonly useOrdinarily: () => Promise<void>;
}

export interface FuzzOptions {
  readonly inputs: number;
  readonly seed: number;
}

export interface FuzzReport extends FuzzOptions {
  /** How often each outcome occurred. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** What the process held after the first tenth, and after the last input. */
  readonly before: Holdings;
  readonly after: Holdings;
}

/** Bounds of the growth between the first tenth and the end, whatever the number of inputs. */
const mostGrowth = { heapBytes: 16 * 1024 * 1024, handles: 20, openFiles: 20, records: 20 };
/** One entry in the audit log and one event for each input. */
const DATABASE_BYTES_PER_INPUT = 1024;
const DATABASE_SLACK_BYTES = 2 * 1024 * 1024;

/** Sends malformed inputs, the same for the same seed. Rejects with a small failing input, or with what has grown. */
export async function runFuzz<Input>(target: FuzzTarget<Input>, { inputs, seed }: FuzzOptions): Promise<FuzzReport> {
  const outcomes: Record<string, number> = {};
  const property = fc.asyncProperty(target.inputs, async (input) => {
    const outcome = await target.send(input);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  });
  const first = Math.ceil(inputs / 10);
  await fc.assert(property, { numRuns: first, seed, includeErrorInReport: true });
  const before = await target.holdings();
  await fc.assert(property, { numRuns: inputs - first, seed: seed + 1, includeErrorInReport: true });
  await target.useOrdinarily();
  const after = await target.holdings();
  requireNoGrowth(before, after, inputs - first);
  return { inputs, seed, outcomes, before, after };
}

function requireNoGrowth(before: Holdings, after: Holdings, inputs: number): void {
  const most = { ...mostGrowth, databaseBytes: DATABASE_SLACK_BYTES + inputs * DATABASE_BYTES_PER_INPUT };
  const grown = (Object.keys(most) as (keyof Holdings)[])
    .filter((name) => after[name] - before[name] > most[name])
    .map((name) => `${name} grew from ${before[name]} to ${after[name]}`);
  if (grown.length > 0) throw new Error(grown.join("; "));
}
