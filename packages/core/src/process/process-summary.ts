import type { ProcessInfo, ProcessResource } from "@sandpiper/protocol";
import { signalNumber } from "./signal-number.ts";

/** A process that was started through the agent, running or not yet forgotten. */
export interface ProcessSummary extends Readonly<Omit<ProcessResource, "startedAt">> {
  readonly startedAt: Date;
  /** Bytes of standard input accepted so far. */
  readonly stdinOffset: number;
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
