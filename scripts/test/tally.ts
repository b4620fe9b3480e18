/** The results of one test runner. */
export interface Tally {
  readonly passed: number;
  readonly failures: readonly Failure[];
  readonly skips: readonly Skip[];
  /** Other failures, in words; each of them fails the run. */
  readonly faults: readonly string[];
}

export interface Failure {
  readonly test: string;
  readonly message: string;
}

export interface Skip {
  readonly test: string;
  readonly reason: string | undefined;
}

export function sumTallies(tallies: readonly Tally[]): Tally {
  return {
    passed: tallies.reduce((sum, tally) => sum + tally.passed, 0),
    failures: tallies.flatMap((tally) => tally.failures),
    skips: tallies.flatMap((tally) => tally.skips),
    faults: tallies.flatMap((tally) => tally.faults),
  };
}

/** A fault, or a skip without a reason, counts as a failed test: it may hide one. */
export function countFailures(tally: Tally): number {
  return tally.failures.length + tally.faults.length + tally.skips.filter((skip) => skip.reason === undefined).length;
}

/** The lines that end a test run: skips, failures, and on the last line `N passed, N failed, N skipped`. */
export function formatTally(tally: Tally): string {
  const reasoned = tally.skips.filter((skip) => skip.reason !== undefined);
  return [
    ...reasoned.map((skip) => `skipped: ${skip.test} (${skip.reason})`),
    ...tally.skips.filter((skip) => skip.reason === undefined).map((skip) => `skipped without a reason: ${skip.test}`),
    ...tally.failures.map((failure) => `failed: ${failure.test}: ${firstLine(failure.message)}`),
    ...tally.faults.map((fault) => `fault: ${fault}`),
    `${tally.passed} passed, ${countFailures(tally)} failed, ${reasoned.length} skipped`,
  ].join("\n");
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
