// The demo of `npm start`: a real sandbox, three languages, its limits, and the duration of each step.
import { SandboxError } from "@sandpiper/core";
import { showExecCost } from "./costs.ts";
import { showLanguages } from "./languages.ts";
import { createDemoSandbox, destroyAllOnInterruption } from "./lifetime.ts";
import { showDiskLimit, showMemoryLimit, showProcessLimit, showTimeLimit } from "./limits.ts";
import { formatMs, printStep, printTitle } from "./terminal.ts";

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

destroyAllOnInterruption();
try {
  await main();
} catch (error) {
  if (!(error instanceof SandboxError)) throw error;
  console.error(`\n${error.message}${error.hint === undefined ? "" : `\n${error.hint}`}`);
  process.exitCode = 1;
}
