import type { Report } from "./report.ts";
import type { OpenSubject } from "./subjects.ts";
import type { Workspace } from "./workspace.ts";

export interface BenchmarkContext {
  readonly workspace: Workspace;
  readonly openSubject: OpenSubject;
  /** Aborted by Ctrl-C and by the benchmark's own time limit. */
  readonly signal: AbortSignal;
  /** How many sandboxes the scale benchmark keeps alive. */
  readonly liveCount: number;
  readonly progress: (text: string) => void;
}

/** Each file in benchmarks/ exports one as `benchmark`; its file name is the benchmark's name. */
export interface Benchmark {
  readonly title: string;
  /** What the measured time includes and excludes. */
  readonly method: string;
  /** Position in the report. */
  readonly order: number;
  readonly timeLimitMs: number;
  /** Additional set-up steps; their time does not count. */
  readonly setUp?: readonly string[];
  run(context: BenchmarkContext): Promise<Report>;
}

export interface NamedBenchmark extends Benchmark {
  readonly name: string;
}
