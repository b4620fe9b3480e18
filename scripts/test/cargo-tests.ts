import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";
import type { Failure, Skip, Tally } from "./tally.ts";

/**
 * Runs the agent's tests. Shows one line for each test program, and all of the output when a test fails.
 * @param args options of `cargo test`, and behind `--` the names of tests
 */
export async function runCargoTests(agentDirectory: string, args: readonly string[]): Promise<Tally> {
  const color = process.stdout.isTTY ? "--color=always" : "--color=never";
  const names = args.includes("--") ? args.slice(args.indexOf("--") + 1) : [];
  const options = args.slice(0, args.length - names.length).filter((word) => word !== "--");
  // A test that cannot run here passes and prints the reason, so the output of passed tests is needed as well.
  const child = spawn(
    "cargo",
    ["test", "--locked", "--no-fail-fast", color, ...options, "--", "--show-output", ...names],
    { cwd: agentDirectory, stdio: ["ignore", "pipe", "inherit"] },
  );
  const exit = once(child, "close").then(
    ([code, signal]) => (code === 0 ? undefined : `cargo test ended with ${code ?? signal}`),
    (error: Error) => `cargo test could not be started (${error.message}): install Rust, as the README says`,
  );
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const plain = stripVTControlCharacters(line);
    if (plain.startsWith("test result:")) console.log(line);
    lines.push(plain);
  }
  const fault = await exit;
  if (fault !== undefined) console.log(lines.join("\n"));
  const tally = cargoTally(lines, fault);
  const ran = tally.passed + tally.failures.length + tally.skips.length;
  if (ran > 0 || fault !== undefined || names.length === 0) return tally;
  return { ...tally, faults: [`no agent test's name contains "${names.join('" or "')}"`] };
}

/**
 * Reads the output of `cargo test`; `fault` says how cargo failed, if it did. cargo counts a test that prints `SKIP: why` as
 * passed; here it is a skip.
 */
export function cargoTally(lines: readonly string[], fault: string | undefined): Tally {
  let passed = 0;
  const failed: string[] = [];
  const panics = new Map<string, string>();
  const skips: Skip[] = [];
  let speaker = "";
  for (const [at, line] of lines.entries()) {
    passed += Number(/^test result: \w+\. (\d+) passed;/.exec(line)?.[1] ?? 0);
    failed.push(...(/^test (\S+)(?: - .*)? \.\.\. FAILED$/.exec(line)?.slice(1) ?? []));
    const ignored = /^test (\S+)(?: - .*)? \.\.\. ignored(?:, (.+))?$/.exec(line);
    if (ignored !== null) skips.push({ test: `agent ${ignored[1]}`, reason: ignored[2] });
    speaker = /^---- (\S+) stdout ----$/.exec(line)?.[1] ?? speaker;
    const [, place] = /^thread '.*' .*panicked at (\S+):$/.exec(line) ?? [];
    if (place !== undefined && !panics.has(speaker)) panics.set(speaker, `${place}: ${lines[at + 1] ?? ""}`);
    const skipped = /^SKIP: (.+)$/.exec(line);
    if (skipped !== null) {
      skips.push({ test: `agent ${speaker}`, reason: skipped[1] });
      passed--;
    }
  }
  const failures = failed.map((test): Failure => {
    return { test: `agent ${test}`, message: panics.get(test) ?? "its output is above" };
  });
  // A failed test makes cargo fail as well; only a failure without one is a separate fault.
  return { passed, failures, skips, faults: fault !== undefined && failures.length === 0 ? [fault] : [] };
}
