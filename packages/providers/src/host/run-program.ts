import { type SpawnOptions, spawn } from "node:child_process";

export interface ProgramResult {
  /** Undefined when a signal ended the program or it could not be started. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  /** Why it did not exit normally; undefined when it did. */
  readonly failure: string | undefined;
}

export interface RunProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** False discards the output, for programs whose children would keep a pipe open. */
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
    // Ctrl-C in the terminal must reach only the host program, which then cleans up.
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
      // An aborted program that has started still emits an exit event.
      if (child.pid === undefined) resolve({ exitCode: undefined, stdout, failure: error.message });
    });
    child.once(keepOutput ? "close" : "exit", (code: number | null, ended: NodeJS.Signals | null) => {
      const failure = ended === null ? undefined : `it was ended by ${ended}`;
      resolve({ exitCode: code ?? undefined, stdout, failure });
    });
  });
}
