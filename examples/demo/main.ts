// What `npm start` shows: a real sandbox, three languages in it, its limits at work, and what it all costs.
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

    printTitle("Three languages, one state");
    await showLanguages(sandbox);

    printTitle("Limits");
    await showTimeLimit(sandbox);
    await showDiskLimit(sandbox);
    await showProcessLimit(sandbox);
    await showMemoryLimit();

    printTitle("A command, start to end");
    await showExecCost(sandbox);
  } finally {
    const destroyStartedAtMs = performance.now();
    await sandbox.destroy();
    printStep("destroyed", "with its processes, files and limits", performance.now() - destroyStartedAtMs);
  }
  console.log(
    `\nDone in ${formatMs(performance.now() - startedAtMs)}. Now yours: npx sandpiper run -- python3 -c 'print(1)'`,
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
