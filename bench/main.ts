import { writeFile } from "node:fs/promises";
import { type BenchArguments, parseArguments, USAGE } from "./arguments.ts";
import type { NamedBenchmark } from "./benchmark.ts";
import { chooseBenchmarks, discoverBenchmarks } from "./benchmarks.ts";
import { describeMachine } from "./machine.ts";
import { renderMarkdown } from "./markdown.ts";
import { runBenchmarks } from "./run-benchmarks.ts";
import { discoverSubjects, subjectOpener } from "./subjects.ts";
import { renderTable } from "./table.ts";
import { Workspace } from "./workspace.ts";

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  let parsed: BenchArguments;
  let benchmarks: readonly NamedBenchmark[];
  try {
    parsed = parseArguments(args);
    benchmarks = chooseBenchmarks(await discoverBenchmarks(), parsed.only);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    process.stderr.write(`bench: ${error.message}\n\n${USAGE}`);
    return 2;
  }
  if (parsed.help) process.stdout.write(USAGE);
  if (parsed.list) {
    for (const one of [...benchmarks, ...(await discoverSubjects())]) {
      process.stdout.write(`${one.name.padEnd(20)}  ${one.title}\n`);
    }
  }
  if (parsed.help || parsed.list) return 0;
  return measure(benchmarks, parsed);
}

async function measure(benchmarks: readonly NamedBenchmark[], parsed: BenchArguments): Promise<number> {
  const interruption = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      process.stderr.write(`\nbench: ${signal}, cleaning up\n`);
      interruption.abort(new Error(`interrupted by ${signal}`));
    });
  }
  const machine = await describeMachine(new Date());
  const definitions = await discoverSubjects();
  try {
    await using workspace = await Workspace.create(interruption.signal);
    const report = await runBenchmarks(benchmarks, {
      workspace,
      openSubject: subjectOpener(definitions, workspace),
      liveCount: parsed.liveCount,
    });
    Object.assign(machine.versions, workspace.versions);
    process.stdout.write(renderTable(report));
    const { results, targets } = report;
    if (parsed.jsonPath !== undefined) {
      await writeFile(parsed.jsonPath, `${JSON.stringify({ machine, results, targets }, undefined, 2)}\n`);
    }
    if (parsed.markdownPath !== undefined) {
      await writeFile(parsed.markdownPath, renderMarkdown({ machine, report, benchmarks, subjects: definitions }));
    }
    return report.problems.length === 0 && targets.every((target) => target.holds) ? 0 : 1;
  } catch (error) {
    if (!interruption.signal.aborted) throw error;
    return 130;
  }
}
