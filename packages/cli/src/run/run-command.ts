import type { Readable } from "node:stream";
import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import { EXIT_TIMED_OUT, exitCodeOfSignal } from "../command/exit-code.ts";
import type { Guest } from "../guest/guest.ts";
import { feedStdin } from "./feed-stdin.ts";

/** The command waits while this does. */
export type OutputHandler = (source: "stdout" | "stderr", bytes: Uint8Array) => Promise<void> | void;

export interface RunCommandOptions {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where it starts and as whom, unless as the sandbox has it. */
  readonly cwd?: string | undefined;
  readonly user?: string | undefined;
  readonly timeoutMs: number | undefined;
  /** Undefined gives the command an empty input. */
  readonly stdin: Readable | undefined;
  readonly onOutput: OutputHandler;
  readonly clock?: Clock;
}

/** How long a sandbox may take to kill everything and to say so. */
const KILL_GRACE_MS = 10_000;

/** How a command ended, in terms of the program's own exit code. */
export interface RunOutcome {
  readonly exitCode: number;
  readonly signal: string | null;
  readonly durationMs: number;
  readonly endedBy: "itself" | "timeout" | "out_of_memory";
}

/** Runs one command in a sandbox, its input and output passing through as bytes. */
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
  const { argv, env, cwd, user, timeoutMs, stdin, onOutput, clock = systemClock } = options;
  const process_ = await guest.start(argv, {
    stdin: stdin !== undefined,
    env,
    cwd,
    user,
    timeoutMs,
    // Each piece has left the program, or was copied, before the next is asked for.
    lendsMemory: true,
  });
  const failed = Promise.withResolvers<never>();
  if (stdin !== undefined) feedStdin(process_, stdin).catch(failed.reject);
  // The sandbox enforces the time limit; this is for one that does not.
  const overdue = () => failed.reject(timeoutIgnored(guest.id, timeoutMs as number));
  const stopTimer = timeoutMs === undefined ? undefined : clock.schedule(timeoutMs + KILL_GRACE_MS, overdue);
  const exit = process_.wait().finally(stopTimer);
  const runsToEnd = async () => {
    for await (const { source, bytes } of process_.output) {
      await onOutput(source === "stderr" ? source : "stdout", bytes);
    }
    return exit;
  };
  // Whichever fails first is told; the others fail with it.
  for (const promise of [exit, failed.promise]) promise.catch(() => {});
  const { exitCode, signal, durationMs, timedOut, outOfMemory } = await Promise.race([runsToEnd(), failed.promise]);
  if (timedOut) return { exitCode: EXIT_TIMED_OUT, signal, durationMs, endedBy: "timeout" };
  return { exitCode, signal, durationMs, endedBy: outOfMemory ? "out_of_memory" : "itself" };
}

function timeoutIgnored(id: string, timeoutMs: number): SandboxError {
  return new SandboxError("deadline_exceeded", {
    reason: "timeout_ignored",
    message: `sandbox ${id} did not end the command after ${timeoutMs} ms, so the whole sandbox was ended`,
    hint: "treat what it printed with suspicion: the command may have taken over the sandbox's agent",
  });
}
