import type { Readable } from "node:stream";
import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import { EXIT_TIMED_OUT, exitCodeOfSignal } from "../command/exit-code.ts";
import type { Guest, GuestStartOptions } from "../guest/guest.ts";
import type { OutputHandler } from "../output/print.ts";
import { feedStdin } from "./stdin.ts";

export interface RunCommandOptions extends Pick<GuestStartOptions, "env" | "cwd" | "user" | "timeoutMs"> {
  readonly argv: readonly string[];
  /** Undefined gives the command an empty input. */
  readonly stdin: Readable | undefined;
  readonly onOutput: OutputHandler;
  readonly clock?: Clock;
}

/** How long a sandbox may take to kill the command and to report it. */
const KILL_GRACE_MS = 10_000;

/** How a command ended, in terms of the program's own exit code. */
export interface RunOutcome {
  readonly exitCode: number;
  readonly signal: string | null;
  readonly durationMs: number;
  readonly endedBy: "itself" | "timeout" | "out_of_memory";
}

/** Runs one command in a sandbox and streams its input and output as bytes. */
export async function runCommand(guest: Guest, options: RunCommandOptions): Promise<RunOutcome> {
  const startedAtMs = performance.now();
  try {
    return await runToEnd(guest, options);
  } catch (error) {
    if (!(error instanceof SandboxError) || error.reason !== "out_of_memory") throw error;
    const killed = { exitCode: exitCodeOfSignal("SIGKILL"), signal: "SIGKILL" };
    return { ...killed, durationMs: performance.now() - startedAtMs, endedBy: "out_of_memory" };
  }
}

async function runToEnd(guest: Guest, options: RunCommandOptions): Promise<RunOutcome> {
  const { argv, stdin, onOutput, clock = systemClock, ...command } = options;
  const { timeoutMs } = command;
  // Each chunk has left the program, or was copied, before the next is requested.
  const process_ = await guest.start(argv, { ...command, stdin: stdin !== undefined, lendsMemory: true });
  const failed = Promise.withResolvers<never>();
  if (stdin !== undefined) feedStdin(process_, stdin).catch(failed.reject);
  // The sandbox enforces the time limit; this catches one that does not.
  const overdue = () => failed.reject(timeoutIgnored(guest.id, timeoutMs as number));
  const stopTimer = timeoutMs === undefined ? undefined : clock.schedule(timeoutMs + KILL_GRACE_MS, overdue);
  const exit = process_.wait().finally(stopTimer);
  const runsToEnd = async () => {
    for await (const { source, bytes } of process_.output) {
      await onOutput(source === "stderr" ? source : "stdout", bytes);
    }
    return exit;
  };
  // The race reports the first failure; the others fail with it.
  for (const promise of [exit, failed.promise]) promise.catch(() => {});
  const { exitCode, signal, durationMs, timedOut, outOfMemory } = await Promise.race([runsToEnd(), failed.promise]);
  if (timedOut) return { exitCode: EXIT_TIMED_OUT, signal, durationMs, endedBy: "timeout" };
  return { exitCode, signal, durationMs, endedBy: outOfMemory ? "out_of_memory" : "itself" };
}

function timeoutIgnored(id: string, timeoutMs: number): SandboxError {
  return new SandboxError("timeout_ignored", {
    message: `sandbox ${id} did not kill the command after ${timeoutMs} ms, so Sandpiper ended the whole sandbox`,
  });
}
