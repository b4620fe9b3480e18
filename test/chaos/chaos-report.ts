export interface ChaosReport {
  /** Broken promises. */
  readonly violations: readonly string[];
  /** The number of violations of each rule. */
  readonly broken: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
  /** The number of faults, failed requests and failed writes of each kind. */
  readonly happened: Readonly<Record<string, number>>;
}

/** The figures of several runs together: sums, and the largest of those that are named so. */
export function sumReports(reports: readonly ChaosReport[]): ChaosReport {
  const add = (of: (report: ChaosReport) => Readonly<Record<string, number>>) => {
    const total: Record<string, number> = {};
    for (const [name, value] of reports.flatMap((report) => Object.entries(of(report)))) {
      const before = total[name] ?? 0;
      total[name] = name.startsWith("longest") ? Math.max(before, value) : before + value;
    }
    return Object.fromEntries(Object.entries(total).sort());
  };
  return {
    violations: reports.flatMap(({ violations }) => violations),
    broken: add(({ broken }) => broken),
    counts: add(({ counts }) => counts),
    happened: add(({ happened }) => happened),
  };
}
