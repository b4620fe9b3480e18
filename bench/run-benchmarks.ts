import { setTimeout as sleep } from "node:timers/promises";
import type { NamedBenchmark } from "./benchmark.ts";
import type { Report } from "./report.ts";
import type { Subjects } from "./subjects.ts";
import type { Workspace } from "./workspace.ts";

const GRACE_MS = 10_000;

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
      reports.push(await endWith(signal, benchmark.run({ ...options, signal, progress })));
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

/**
 * Lets a benchmark clean up after itself when its signal fires, for a while: a step that hangs must not keep the run from
 * ending. What it still holds then is removed with the workspace.
 */
async function endWith(signal: AbortSignal, running: Promise<Report>): Promise<Report> {
  const { promise: interrupted, reject } = Promise.withResolvers<never>();
  const interrupt = () => reject(signal.reason);
  signal.addEventListener("abort", interrupt, { once: true });
  try {
    return await Promise.race([running, interrupted]);
  } catch (error) {
    await Promise.race([running.catch(() => undefined), sleep(GRACE_MS)]);
    throw error;
  } finally {
    signal.removeEventListener("abort", interrupt);
  }
}

/** On a terminal one line per benchmark, rewritten as it goes on; in a log only its beginning and end. */
function progressLine(name: string): (text: string) => void {
  if (process.stderr.isTTY) return (text) => process.stderr.write(`\r\x1b[K${name}: ${text}`);
  process.stderr.write(`${name}: running\n`);
  return (text) => {
    if (text.endsWith("\n")) process.stderr.write(`${name}: ${text}`);
  };
}
