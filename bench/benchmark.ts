import type { Report } from "./report.ts";
import type { Subjects } from "./subjects.ts";
import type { Workspace } from "./workspace.ts";

export interface BenchmarkContext {
  readonly workspace: Workspace;
  readonly subjects: Subjects;
  /** Aborted by Ctrl-C and by the benchmark's own time limit. */
  readonly signal: AbortSignal;
  /** How many sandboxes the scale benchmark keeps alive. */
  readonly liveCount: number;
  readonly progress: (text: string) => void;
}

/** One file in benchmarks/ exports one of these as `benchmark`; the file's name is the benchmark's. */
export interface Benchmark {
  readonly title: string;
  /** What the clock covers and what it does not, for readers who doubt the figures. */
  readonly method: string;
  /** Position in the report. */
  readonly order: number;
  readonly timeLimitMs: number;
  /** Steps of set-up that it needs beside the usual ones; their time does not count. */
  readonly setUp?: readonly string[];
  run(context: BenchmarkContext): Promise<Report>;
}

export interface NamedBenchmark extends Benchmark {
  readonly name: string;
}
