import type { NamedBenchmark } from "./benchmark.ts";
import type { Report } from "./report.ts";
import type { Subjects } from "./subjects.ts";
import type { Workspace } from "./workspace.ts";

/** Runs one benchmark after the other; one that fails is reported and the next goes on, an interruption ends the run. */
export async function runBenchmarks(
  benchmarks: readonly NamedBenchmark[],
  options: { readonly workspace: Workspace; readonly subjects: Subjects; readonly liveCount: number },
): Promise<Report> {
  const { workspace } = options;
  const reports: Report[] = [];
  for (const benchmark of benchmarks) {
    const progress = progressLine(benchmark.name);
    const signal = AbortSignal.any([workspace.signal, AbortSignal.timeout(benchmark.timeLimitMs)]);
    try {
      // A step that hangs must not keep the run from ending; what it holds is removed with the workspace.
      reports.push(await Promise.race([benchmark.run({ ...options, signal, progress }), rejectOn(signal)]));
    } catch (error) {
      workspace.signal.throwIfAborted();
      const message = error instanceof Error ? error.message : String(error);
      reports.push({ results: [], targets: [], problems: [`${benchmark.name}: ${message}`] });
    }
    progress("done\n");
  }
  return {
    results: reports.flatMap((report) => report.results),
    targets: reports.flatMap((report) => report.targets),
    problems: reports.flatMap((report) => report.problems),
  };
}

function rejectOn(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  return promise;
}

/** On a terminal one line per benchmark, rewritten as it goes on; in a log only its beginning and end. */
function progressLine(name: string): (text: string) => void {
  if (process.stderr.isTTY) return (text) => process.stderr.write(`\r\x1b[K${name}: ${text}`);
  process.stderr.write(`${name}: running\n`);
  return (text) => {
    if (text.endsWith("\n")) process.stderr.write(`${name}: ${text}`);
  };
}
