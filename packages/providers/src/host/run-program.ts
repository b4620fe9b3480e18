import { type SpawnOptions, spawn } from "node:child_process";

export interface ProgramResult {
  /** Undefined when a signal ended the program or it could not be started. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  /** Why it did not exit by itself; undefined when it did. */
  readonly failure: string | undefined;
}

export interface RunProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Without it nothing of the output is kept; a program that leaves children behind must not hold a pipe to us. */
  readonly keepOutput?: boolean;
}

const MAX_OUTPUT_CHARACTERS = 64 * 1024;

/** Runs a program of the host to its end; never rejects. */
export function runProgram(
  argv: readonly [string, ...string[]],
  { env = {}, timeoutMs, signal, keepOutput = true }: RunProgramOptions = {},
): Promise<ProgramResult> {
  const [program, ...args] = argv;
  const options: SpawnOptions = {
    cwd: "/",
    env,
    stdio: ["ignore", keepOutput ? "pipe" : "ignore", "ignore"],
    // A Ctrl-C in the terminal is for the host program alone, which then cleans up in order.
    detached: true,
    killSignal: "SIGKILL",
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
    ...(signal === undefined ? {} : { signal }),
  };
  return new Promise((resolve) => {
    let stdout = "";
    const child = spawn(program, args, options);
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      if (stdout.length < MAX_OUTPUT_CHARACTERS) stdout += text;
    });
    child.once("error", (error) => {
      // A started program that is aborted ends with an exit event of its own.
      if (child.pid === undefined) resolve({ exitCode: undefined, stdout, failure: error.message });
    });
    child.once(keepOutput ? "close" : "exit", (code: number | null, ended: NodeJS.Signals | null) => {
      const failure = ended === null ? undefined : `it was ended by ${ended}`;
      resolve({ exitCode: code ?? undefined, stdout, failure });
    });
  });
}
