import type { Readable } from "node:stream";
import { type Sandbox, SandboxError } from "@sandpiper/core";
import { EXIT_TIMED_OUT, exitCodeOfSignal } from "../exit-code.ts";
import { feedStdin } from "./feed-stdin.ts";

/** The command waits while this does. */
export type OutputHandler = (source: "stdout" | "stderr", bytes: Uint8Array) => Promise<void> | void;

export interface RunCommandOptions {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number | undefined;
  /** Undefined gives the command an empty input. */
  readonly stdin: Readable | undefined;
  readonly onOutput: OutputHandler;
}

/** How a command ended, in terms of the program's own exit code. */
export interface RunOutcome {
  readonly exitCode: number;
  readonly signal: string | null;
  readonly durationMs: number;
  readonly endedBy: "itself" | "timeout" | "out_of_memory";
}

/** Runs one command in a sandbox, its input and output passing through as bytes. */
export async function runCommand(sandbox: Sandbox, options: RunCommandOptions): Promise<RunOutcome> {
  const startedAtMs = performance.now();
  try {
    return await runToEnd(sandbox, options);
  } catch (error) {
    if (!(error instanceof SandboxError) || error.reason !== "out_of_memory") throw error;
    const killed = { exitCode: exitCodeOfSignal("SIGKILL"), signal: "SIGKILL" };
    return { ...killed, durationMs: performance.now() - startedAtMs, endedBy: "out_of_memory" };
  }
}

async function runToEnd(sandbox: Sandbox, options: RunCommandOptions): Promise<RunOutcome> {
  const { argv, env, timeoutMs, stdin, onOutput } = options;
  const process_ = await sandbox.start(argv, { stdin: stdin !== undefined, env, timeoutMs });
  const streamOutput = async () => {
    for await (const { source, bytes } of process_.output)
      await onOutput(source === "stderr" ? source : "stdout", bytes);
  };
  const inputFailed = new Promise<never>((_, reject) => {
    if (stdin !== undefined) feedStdin(process_, stdin).catch(reject);
  });
  await Promise.race([streamOutput(), inputFailed]);
  const { exitCode, signal, durationMs, timedOut, outOfMemory } = await process_.wait();
  if (timedOut) return { exitCode: EXIT_TIMED_OUT, signal, durationMs, endedBy: "timeout" };
  return { exitCode, signal, durationMs, endedBy: outOfMemory ? "out_of_memory" : "itself" };
}
