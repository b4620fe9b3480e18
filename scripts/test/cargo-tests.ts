import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";
import type { Skip, Tally } from "./tally.ts";

/** Runs the agent's tests, showing their output as it comes. */
export async function runCargoTests(agentDirectory: string): Promise<Tally> {
  const color = process.stdout.isTTY ? "--color=always" : "--color=never";
  // What a passed test printed is shown too, since that is where it says that it could not do its work here.
  const child = spawn("cargo", ["test", "--locked", "--no-fail-fast", color, "--", "--show-output"], {
    cwd: agentDirectory,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    console.log(line);
    lines.push(stripVTControlCharacters(line));
  }
  const [code, signal] = await exit;
  return cargoTally(lines, code === 0 ? undefined : `cargo test ended with ${code ?? signal}`);
}

/**
 * Reads what `cargo test` printed; `fault` says how it failed, if it did. cargo counts a test that printed `SKIP: why` as
 * passed; here it is a skip.
 */
export function cargoTally(lines: readonly string[], fault: string | undefined): Tally {
  let passed = 0;
  let failed = 0;
  const skips: Skip[] = [];
  let speaker = "";
  for (const line of lines) {
    const result = /^test result: \w+\. (\d+) passed; (\d+) failed;/.exec(line);
    passed += Number(result?.[1] ?? 0);
    failed += Number(result?.[2] ?? 0);
    const ignored = /^test (\S+)(?: - .*)? \.\.\. ignored(?:, (.+))?$/.exec(line);
    if (ignored !== null) skips.push({ test: `agent ${ignored[1]}`, reason: ignored[2] });
    speaker = /^---- (\S+) stdout ----$/.exec(line)?.[1] ?? speaker;
    const skipped = /^SKIP: (.+)$/.exec(line);
    if (skipped !== null) {
      skips.push({ test: `agent ${speaker}`, reason: skipped[1] });
      passed--;
    }
  }
  // A failed test makes cargo fail as well; only a failure without one is a fault of its own.
  return { passed, failed, skips, faults: fault !== undefined && failed === 0 ? [fault] : [] };
}
