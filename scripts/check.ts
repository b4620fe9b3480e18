// Checks the source without running a sandbox. A failed check does not keep the others from running.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

const repo = join(import.meta.dirname, "..");
const agent = join(repo, "agent");
const bin = join(repo, "node_modules/.bin");
const node = process.execPath;

interface Check {
  readonly name: string;
  readonly cwd: string;
  readonly argv: readonly [string, ...string[]];
}

const checks: readonly Check[] = [
  { name: "biome", cwd: repo, argv: [node, join(bin, "biome"), "check", "--error-on-warnings", "."] },
  { name: "tsc", cwd: repo, argv: [node, join(bin, "tsc"), "-p", "."] },
  { name: "knip", cwd: repo, argv: [node, join(bin, "knip")] },
  { name: "clippy", cwd: agent, argv: ["cargo", "clippy", "--locked", "--all-targets", "--", "-D", "warnings"] },
  { name: "rustfmt", cwd: agent, argv: ["cargo", "fmt", "--check"] },
  { name: "architecture", cwd: repo, argv: [node, join(bin, "vitest"), "run", "test/architecture"] },
];

const failed: string[] = [];
for (const check of checks) {
  if (!(await runCheck(check))) failed.push(check.name);
}
console.log(
  failed.length === 0
    ? `All ${checks.length} checks passed.`
    : `${failed.length} of ${checks.length} checks failed: ${failed.join(", ")}.`,
);
process.exitCode = failed.length === 0 ? 0 : 1;

/** Runs one check, and shows its output only when it fails. */
async function runCheck({ name, cwd, argv: [program, ...args] }: Check): Promise<boolean> {
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
