import assert from "node:assert/strict";
import type { Sandbox } from "@sandpiper/core";
import { printStep } from "./terminal.ts";

/** Node.js reads a file that Python wrote: the sandbox keeps its state between commands. */
const programs = [
  {
    label: "Python",
    language: "python",
    code: "import json; json.dump([n*n for n in range(5)], open('/tmp/squares.json', 'w')); print('6 * 7 =', 6*7)",
    expected: "6 * 7 = 42",
  },
  {
    label: "Node.js",
    language: "javascript",
    code: "console.log('squares from Python:', JSON.parse(require('fs').readFileSync('/tmp/squares.json')).join(' '))",
    expected: "squares from Python: 0 1 4 9 16",
  },
  {
    label: "Bash",
    language: "bash",
    code: 'echo "$(whoami) sees $(ls /proc | grep -c "^[0-9]") processes and $(ls /sys/class/net 2>/dev/null | grep -vxc lo) networks"',
    expected: /^user sees \d processes and 0 networks$/,
  },
];

export async function showLanguages(sandbox: Sandbox): Promise<void> {
  for (const { label, language, code, expected } of programs) {
    const result = await sandbox.executeCode(language, code);
    assert.equal(result.exitCode, 0, result.stderr);
    const printed = result.stdout.trim();
    if (typeof expected === "string") assert.equal(printed, expected);
    else assert.match(printed, expected);
    printStep(label, printed, result.durationMs);
  }
}
