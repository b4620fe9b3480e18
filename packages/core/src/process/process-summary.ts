import type { ProcessInfo } from "@sandpiper/protocol";
import { signalNumber } from "./signal-number.ts";

/** A process that was started through the agent, running or not yet forgotten. */
export interface ProcessSummary {
  readonly id: string;
  readonly pid: number;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly user: string;
  readonly hasPty: boolean;
  readonly startedAt: Date;
  /** Oldest offset of its output that can still be read. */
  readonly startOffset: number;
  /** Offset of its next byte of output. */
  readonly endOffset: number;
  /** Bytes of standard input accepted so far. */
  readonly stdinOffset: number;
  readonly isRunning: boolean;
  /** Null while the process runs. */
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export function processSummary(info: ProcessInfo): ProcessSummary {
  const { status } = info;
  return {
    id: info.process,
    pid: info.pid,
    argv: info.argv,
    cwd: info.cwd,
    user: info.user,
    hasPty: info.pty,
    startedAt: new Date(info.started_at_ms),
    startOffset: info.start_offset,
    endOffset: info.end_offset,
    stdinOffset: info.stdin_offset,
    isRunning: status === null,
    exitCode: status === null ? null : status.signal === null ? status.exit_code : 128 + signalNumber(status.signal),
    signal: status?.signal ?? null,
  };
}
