import { type ChildProcess, spawn } from "node:child_process";

/** Input and output of a program: none, or an open host file. */
export interface Redirection {
  readonly stdin?: "ignore" | number;
  readonly stdout?: "ignore" | number;
}

/** Milliseconds from the start of a program until it has exited with 0. */
export async function timeToExit(
  program: string,
  args: readonly string[],
  { stdin = "ignore", stdout = "ignore" }: Redirection = {},
): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(program, args, { stdio: [stdin, stdout, "inherit"] });
  await exitedCleanly(child, program);
  return performance.now() - startedAt;
}

/** Milliseconds from the start of a program until the first byte of its output; returns when it has exited with 0. */
export async function timeToFirstByte(program: string, args: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let tookMs: number | undefined;
  child.stdout.on("data", () => {
    tookMs ??= performance.now() - startedAt;
  });
  await exitedCleanly(child, program);
  if (tookMs === undefined) throw new Error(`${program} ${args.join(" ")} printed nothing`);
  return tookMs;
}

function exitedCleanly(child: ChildProcess, program: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.on("error", reject);
  child.on("close", (code, signal) => {
    if (code === 0) resolve();
    else reject(new Error(`${program} ended with ${signal ?? `exit code ${code}`}`));
  });
  return promise;
}
