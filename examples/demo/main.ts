// What `npm start` shows: a real sandbox, three languages in it, its limits at work, and what it all costs.
import { createSandbox } from "@sandpiper/node";
import { showLanguages } from "./languages.ts";
import { showDiskLimit, showMemoryLimit, showProcessLimit, showTimeLimit } from "./limits.ts";
import { formatMs, printStep, printTitle } from "./terminal.ts";

const EXEC_COUNT = 20;
const startedAtMs = performance.now();

printTitle("A sandbox");
const sandbox = await createSandbox({ provider: "gvisor", memoryMib: 256, diskMib: 64, maxProcesses: 32 });
try {
  printStep("created", `${sandbox.id} on ${sandbox.provider}`, performance.now() - startedAtMs);

  printTitle("Three languages, one state");
  await showLanguages(sandbox);

  printTitle("Limits");
  await showTimeLimit(sandbox);
  await showDiskLimit(sandbox);
  await showProcessLimit(sandbox);
  await using victim = await createSandbox({ provider: "gvisor", memoryMib: 64 });
  await showMemoryLimit(victim);

  printTitle("A command, start to end");
  const durationsMs: number[] = [];
  for (let count = 0; count < EXEC_COUNT; count++) {
    const execStartedAtMs = performance.now();
    await sandbox.exec(["/bin/true"]);
    durationsMs.push(performance.now() - execStartedAtMs);
  }
  const medianMs = durationsMs.sort((a, b) => a - b)[EXEC_COUNT / 2] ?? 0;
  printStep("/bin/true", `median of ${EXEC_COUNT}`, medianMs);
} finally {
  const destroyStartedAtMs = performance.now();
  await sandbox.destroy();
  printStep("destroyed", "with its processes, files and limits", performance.now() - destroyStartedAtMs);
}
console.log(
  `\nDone in ${formatMs(performance.now() - startedAtMs)}. Now yours: npx sandpiper run -- python3 -c 'print(1)'`,
);
