// The demo of `npm start`: a real sandbox, three languages, its limits, and the duration of each step.
import assert from "node:assert/strict";
import { type Sandbox, SandboxError } from "@sandpiper/core";
import { showLanguages } from "./languages.ts";
import { createDemoSandbox, destroyAllOnInterruption } from "./lifetime.ts";
import { showDiskLimit, showMemoryLimit, showProcessLimit, showTimeLimit } from "./limits.ts";
import { formatMs, printStep, printTitle } from "./terminal.ts";

const EXEC_COUNT = 20;

async function main(): Promise<void> {
  const startedAtMs = performance.now();
  printTitle("A sandbox");
  const sandbox = await createDemoSandbox({ memoryMib: 256, diskMib: 32, maxProcesses: 24 });
  try {
    printStep("created", `${sandbox.id} on ${sandbox.provider}`, performance.now() - startedAtMs);

    printTitle("Three languages, shared state");
    await showLanguages(sandbox);

    printTitle("Limits");
    await showTimeLimit(sandbox);
    await showDiskLimit(sandbox);
    await showProcessLimit(sandbox);
    await showMemoryLimit();

    printTitle("A command from start to exit");
    await showExecCost(sandbox);
  } finally {
    const destroyStartedAtMs = performance.now();
    await sandbox.destroy();
    printStep("destroyed", "with its processes, files and cgroups", performance.now() - destroyStartedAtMs);
  }
  console.log(
    `\nDone in ${formatMs(performance.now() - startedAtMs)}. Try it: npx sandpiper run -- python3 -c 'print(1)'`,
  );
}

async function showExecCost(sandbox: Sandbox): Promise<void> {
  const durationsMs: number[] = [];
  for (let count = 0; count < EXEC_COUNT; count++) {
    const startedAtMs = performance.now();
    const { exitCode } = await sandbox.exec(["/bin/true"]);
    durationsMs.push(performance.now() - startedAtMs);
    assert.equal(exitCode, 0);
  }
  durationsMs.sort((a, b) => a - b);
  printStep("/bin/true", `median of ${EXEC_COUNT}`, durationsMs[EXEC_COUNT / 2] ?? Number.NaN);
}

destroyAllOnInterruption();
try {
  await main();
} catch (error) {
  if (!(error instanceof SandboxError)) throw error;
  console.error(`\n${error.message}${error.hint === undefined ? "" : `\n${error.hint}`}`);
  process.exitCode = 1;
}
