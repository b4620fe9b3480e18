import type { AgentResult, ProcessExitBody } from "@sandpiper/protocol";
import { invalidAnswer } from "../agent/agent-error.ts";
import { signalNumber } from "./signal-number.ts";

/** How a process ended; the exit code is 128 + the number of the signal that ended it, as in shells. */
export type ProcessExit = Readonly<ProcessExitBody>;

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
