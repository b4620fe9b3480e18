import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { BenchmarkContext, NamedBenchmark } from "./benchmark.ts";
import { joined, type Report } from "./report.ts";

const GRACE_MS = 10_000;
const setUpScript = fileURLToPath(new URL("../scripts/setup.mjs", import.meta.url));

/** Runs the benchmarks in sequence. A failure is reported and the next one runs; an interruption ends the run. */
export async function runBenchmarks(
  benchmarks: readonly NamedBenchmark[],
  options: Pick<BenchmarkContext, "workspace" | "openSubject" | "liveCount">,
): Promise<Report> {
  const { workspace } = options;
  const reports: Report[] = [];
  for (const benchmark of benchmarks) {
    const progress = progressLine(benchmark.name);
    try {
      await setUp(benchmark, workspace.signal, progress);
      const signal = AbortSignal.any([workspace.signal, AbortSignal.timeout(benchmark.timeLimitMs)]);
      reports.push(await endWith(signal, benchmark.run({ ...options, signal, progress })));
    } catch (error) {
      workspace.signal.throwIfAborted();
      const message = error instanceof Error ? error.message : String(error);
      reports.push({ results: [], targets: [], problems: [`${benchmark.name}: ${message}`] });
    }
    progress("done\n");
  }
  return joined(reports);
}

async function setUp(
  { setUp: steps = [] }: NamedBenchmark,
  signal: AbortSignal,
  progress: (text: string) => void,
): Promise<void> {
  if (steps.length === 0) return;
  progress(`setting up ${steps.join(", ")}, which takes minutes the first time`);
  await promisify(execFile)(process.execPath, [setUpScript, "--quiet", ...steps], { signal, killSignal: "SIGINT" });
}

/**
 * Gives a benchmark limited time to clean up when its signal fires, so that a hanging step does not block the run. The
 * workspace removes the rest.
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

/** On a terminal one line per benchmark, updated in place; in a log only its start and end. */
function progressLine(name: string): (text: string) => void {
  if (process.stderr.isTTY) return (text) => process.stderr.write(`\r\x1b[K${name}: ${text}`);
  process.stderr.write(`${name}: running\n`);
  return (text) => {
    if (text.endsWith("\n")) process.stderr.write(`${name}: ${text}`);
  };
}
