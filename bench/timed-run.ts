import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

/** Input and output of a program: none, or an open host file. */
export interface Redirection {
  readonly stdin?: "ignore" | number;
  readonly stdout?: "ignore" | number;
}

/** Milliseconds that the work takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** Takes samples sequentially. */
export async function repeated<Sample>(count: number, sample: () => Promise<Sample>): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let k = 0; k < count; k++) samples.push(await sample());
  return samples;
}

/** Runs a static `true` in a sandbox, `count` times sequentially, each after a pause. */
export function timeTrue(
  sandbox: { readonly id: string; exec(argv: string[]): Promise<{ readonly exitCode: number | null }> },
  path: string,
  { count = 1, restMs = 0 } = {},
): Promise<number[]> {
  return repeated(count, async () => {
    if (restMs > 0) await sleep(restMs);
    const startedAt = performance.now();
    const { exitCode } = await sandbox.exec([path]);
    const tookMs = performance.now() - startedAt;
    if (exitCode !== 0) throw new Error(`true in ${sandbox.id} exited with ${exitCode}`);
    return tookMs;
  });
}

/** Milliseconds from the start of a program until it has exited with 0. */
export async function timeToExit(
  program: string,
  args: readonly string[],
  { stdin = "ignore", stdout = "ignore" }: Redirection = {},
): Promise<number> {
  return await timed(() => exitedCleanly(spawn(program, args, { stdio: [stdin, stdout, "inherit"] }), program));
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
