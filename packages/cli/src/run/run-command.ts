import type { Readable } from "node:stream";
import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import type { Program } from "@sandpiper/protocol";
import { EXIT_TIMED_OUT, exitCodeOfSignal } from "../command/exit-code.ts";
import type { Guest, GuestStartOptions } from "../guest/guest.ts";
import type { OutputHandler } from "../output/print.ts";
import { feedStdin } from "./stdin.ts";

export interface RunCommandOptions extends Pick<GuestStartOptions, "env" | "cwd" | "user" | "timeoutMs"> {
  readonly program: Program;
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
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  /** The sandbox has ended with the command, and its files are lost. */
  readonly hasSandboxEnded: boolean;
  /** The sandbox dropped output before it was read. */
  readonly hasLostOutput: boolean;
}

/** Runs one command in a sandbox and streams its input and output as bytes. */
export async function runCommand(guest: Guest, options: RunCommandOptions): Promise<RunOutcome> {
  const startedAtMs = performance.now();
  try {
    return await runToEnd(guest, options);
  } catch (error) {
    if (!(error instanceof SandboxError) || error.reason !== "out_of_memory") throw error;
    const killed = { exitCode: exitCodeOfSignal("SIGKILL"), signal: "SIGKILL", timedOut: false, outOfMemory: true };
    return { ...killed, durationMs: performance.now() - startedAtMs, hasSandboxEnded: true, hasLostOutput: false };
  }
}

async function runToEnd(guest: Guest, options: RunCommandOptions): Promise<RunOutcome> {
  const { program, stdin, onOutput, clock = systemClock, ...command } = options;
  const { timeoutMs } = command;
  // Each chunk has left the program, or was copied, before the next is requested.
  const process_ = await guest.start(program, { ...command, stdin: stdin !== undefined, lendsMemory: true });
  const failed = Promise.withResolvers<never>();
  if (stdin !== undefined) feedStdin(process_, stdin).catch(failed.reject);
  // The sandbox enforces the time limit; this catches one that does not.
  const overdue = () => failed.reject(timeoutIgnored(guest.id, timeoutMs as number));
  const stopTimer = timeoutMs === undefined ? undefined : clock.schedule(timeoutMs + KILL_GRACE_MS, overdue);
  const exit = process_.wait().finally(stopTimer);
  let hasLostOutput = false;
  const runsToEnd = async () => {
    for await (const { source, bytes, dropped } of process_.output) {
      hasLostOutput ||= dropped > 0;
      await onOutput(source === "stderr" ? source : "stdout", bytes);
    }
    return exit;
  };
  // The race reports the first failure; the others fail with it.
  for (const promise of [exit, failed.promise]) promise.catch(() => {});
  const { exitCode, signal, durationMs, timedOut, outOfMemory } = await Promise.race([runsToEnd(), failed.promise]);
  const ownExitCode = timedOut ? EXIT_TIMED_OUT : exitCode;
  return { exitCode: ownExitCode, signal, durationMs, timedOut, outOfMemory, hasSandboxEnded: false, hasLostOutput };
}

function timeoutIgnored(id: string, timeoutMs: number): SandboxError {
  return new SandboxError("timeout_ignored", {
    message: `sandbox ${id} did not kill the command after ${timeoutMs} ms, so Sandpiper ended the whole sandbox`,
  });
}
