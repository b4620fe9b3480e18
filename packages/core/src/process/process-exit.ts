import type { AgentResult } from "@sandpiper/protocol";
import { invalidAnswer } from "../agent/agent-error.ts";
import { signalNumber } from "./signal-number.ts";

/** How a process ended. */
export interface ProcessExit {
  /** 128 + the signal's number when a signal ended it, as shells have it. */
  readonly exitCode: number;
  /** For example "SIGKILL"; null when it exited by itself. */
  readonly signal: string | null;
  /** Its time was up and its tree was killed. */
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  readonly durationMs: number;
}

export function processExit({ status, duration_ms }: AgentResult<"process.wait">): ProcessExit {
  const exitCode = status.signal === null ? status.exit_code : 128 + signalNumber(status.signal);
  if (exitCode === null) throw invalidAnswer("process.wait", "neither an exit code nor a signal");
  return {
    exitCode,
    signal: status.signal,
    timedOut: status.timed_out,
    outOfMemory: status.out_of_memory,
    durationMs: duration_ms,
  };
}
