import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";
import type { Failure, Skip, Tally } from "./tally.ts";

/** Runs the agent's tests, showing one line of each program as it ends, and all that was printed when a test fails. */
export async function runCargoTests(agentDirectory: string): Promise<Tally> {
  const color = process.stdout.isTTY ? "--color=always" : "--color=never";
  // What a passed test printed is told too, since that is where it says that it could not do its work here.
  const child = spawn("cargo", ["test", "--locked", "--no-fail-fast", color, "--", "--show-output"], {
    cwd: agentDirectory,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const plain = stripVTControlCharacters(line);
    if (plain.startsWith("test result:")) console.log(line);
    lines.push(plain);
  }
  const [code, signal] = await exit;
  if (code !== 0) console.log(lines.join("\n"));
  return cargoTally(lines, code === 0 ? undefined : `cargo test ended with ${code ?? signal}`);
}

/**
 * Reads what `cargo test` printed; `fault` says how it failed, if it did. cargo counts a test that printed `SKIP: why` as
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
  // A failed test makes cargo fail as well; only a failure without one is a fault of its own.
  return { passed, failures, skips, faults: fault !== undefined && failures.length === 0 ? [fault] : [] };
}
