/** What became of the tests of one runner. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skips: readonly Skip[];
  /** What else went wrong, in words; makes the run fail even when no test did. */
  readonly faults: readonly string[];
}

export interface Skip {
  readonly test: string;
  readonly reason: string | undefined;
}

export function sumTallies(tallies: readonly Tally[]): Tally {
  return {
    passed: tallies.reduce((sum, tally) => sum + tally.passed, 0),
    failed: tallies.reduce((sum, tally) => sum + tally.failed, 0),
    skips: tallies.flatMap((tally) => tally.skips),
    faults: tallies.flatMap((tally) => tally.faults),
  };
}

/** A fault, or a skip that nobody gave a reason for, counts as a failed test: it hides one. */
export function countFailures(tally: Tally): number {
  return tally.failed + tally.faults.length + tally.skips.filter((skip) => skip.reason === undefined).length;
}

/** The lines that end a test run; the last one is `N passed, N failed, N skipped`. */
export function formatTally(tally: Tally): string {
  const reasoned = tally.skips.filter((skip) => skip.reason !== undefined);
  return [
    ...reasoned.map((skip) => `skipped: ${skip.test} (${skip.reason})`),
    ...tally.skips.filter((skip) => skip.reason === undefined).map((skip) => `skipped without a reason: ${skip.test}`),
    ...tally.faults.map((fault) => `fault: ${fault}`),
    `${tally.passed} passed, ${countFailures(tally)} failed, ${reasoned.length} skipped`,
  ].join("\n");
}
