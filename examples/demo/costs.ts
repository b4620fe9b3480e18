import assert from "node:assert/strict";
import type { Sandbox } from "@sandpiper/core";
import { printStep } from "./terminal.ts";

const COUNT = 20;

export async function showExecCost(sandbox: Sandbox): Promise<void> {
  const durationsMs: number[] = [];
  for (let count = 0; count < COUNT; count++) {
    const startedAtMs = performance.now();
    const { exitCode } = await sandbox.exec(["/bin/true"]);
    durationsMs.push(performance.now() - startedAtMs);
    assert.equal(exitCode, 0);
  }
  durationsMs.sort((a, b) => a - b);
  printStep("/bin/true", `median of ${COUNT}`, durationsMs[COUNT / 2] ?? Number.NaN);
}
