import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

/** The program as a user's shell finds it. */
export const sandpiper = join(import.meta.dirname, "../../packages/cli/bin/sandpiper");

export interface CliResult {
  /** As a shell would report it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stdoutBytes: Buffer;
  readonly stderr: string;
}

export interface CliOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Sent to standard input, which then ends. */
  readonly stdin?: string | Buffer;
  /** A file for standard output, instead of a pipe that is read. */
  readonly stdoutFile?: string;
}

/** Starts the command line program, with its streams as pipes. */
export function startCli(
  argv: readonly string[],
  options: CliOptions & Pick<SpawnOptions, "stdio"> = {},
): ChildProcess {
  const { env = {}, cwd = "/", stdio = "pipe" } = options;
  return spawn(sandpiper, argv, { cwd, env: { ...process.env, ...env }, stdio });
}

/** Runs the command line program to its end. */
export async function runCli(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const file = options.stdoutFile === undefined ? undefined : openSync(options.stdoutFile, "w");
  const child = startCli(argv, { ...options, stdio: ["pipe", file ?? "pipe", "pipe"] });
  if (file !== undefined) closeSync(file);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
  // A program may end without reading its input.
  child.stdin?.on("error", () => {});
  child.stdin?.end(options.stdin ?? "");
  const [exitCode, signal] = await once(child, "close");
  const stdoutBytes = Buffer.concat(stdout);
  return { exitCode, signal, stdoutBytes, stdout: stdoutBytes.toString(), stderr: Buffer.concat(stderr).toString() };
}
