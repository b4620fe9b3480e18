import { spawn } from "node:child_process";

export interface RunOptions {
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  /** Exit codes other than 0 are errors unless this is false. */
  readonly check?: boolean;
}

export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a host program with small text output. */
export function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { promise, resolve, reject } = Promise.withResolvers<RunResult>();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], signal: options.signal, env: options.env });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.on("error", reject);
  child.on("close", (code, signal) => {
    const exitCode = code ?? 1;
    if (exitCode === 0 || options.check === false) return resolve({ exitCode, stdout, stderr });
    const ending = signal ?? `exit code ${exitCode}`;
    reject(new Error(`${program} ${args.join(" ")}: ${ending}: ${(stderr || stdout).trim().slice(-2000)}`));
  });
  return promise;
}
