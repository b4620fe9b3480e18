// Checks the source without running a sandbox. A failed check does not keep the others from running.
import { join } from "node:path";
import { type Check, runCheck } from "./run-check.ts";

const repo = join(import.meta.dirname, "..");
const agent = join(repo, "agent");
const bin = join(repo, "node_modules/.bin");
const node = process.execPath;

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
