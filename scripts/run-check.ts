import { spawn } from "node:child_process";
import { once } from "node:events";

export interface Check {
  readonly name: string;
  readonly cwd: string;
  readonly argv: readonly [string, ...string[]];
}

/** Runs one check, and shows its output only when it fails. */
export async function runCheck({ name, cwd, argv: [program, ...args] }: Check): Promise<boolean> {
  const startedAtMs = performance.now();
  const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => output.push(chunk));
  const outcome = await once(child, "close").then(
    ([code, signal]) => (code === 0 ? undefined : `ended with ${code ?? signal}`),
    (error: Error) => `could not be started: ${error.message}`,
  );
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(outcome === undefined ? `✓ ${name} (${seconds} s)` : `✗ ${name} ${outcome} (${seconds} s)`);
  if (outcome !== undefined) console.log(Buffer.concat(output).toString().replace(/^/gm, "    "));
  return outcome === undefined;
}
