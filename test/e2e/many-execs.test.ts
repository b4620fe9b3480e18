import type { Sandbox } from "@sandpiper/core";
import { createSandbox } from "@sandpiper/node";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";

const scratch = sharedDirectory("e2e");
const EXECS = 500;
const AGENT_GROWTH_KIB = 1024;
/** The agent keeps some unused pipes, and refills them when idle; one lost with each command would be 500. */
const SPARE_FILES = 20;

describe(`${EXECS} commands one after another`, () => {
  it("leave no process, file descriptor or memory behind in the agent", { timeout: 120_000 }, async () => {
    await using sandbox = await createSandbox({ home: scratch });
    // After these the agent has made its one-time allocations.
    for (let count = 0; count < 20; count++) await runOne(sandbox, count);
    const before = await inspect(sandbox);
    for (let count = 0; count < EXECS; count++) await runOne(sandbox, count);
    const after = await inspect(sandbox);

    expect(await sandbox.processes()).toEqual([]);
    expect(after.processes).toEqual(before.processes);
    expect(after.agentFiles - before.agentFiles).toBeLessThan(SPARE_FILES);
    expect(after.agentKib - before.agentKib).toBeLessThan(AGENT_GROWTH_KIB);
  });
});

async function runOne(sandbox: Sandbox, count: number): Promise<void> {
  const { stdout, exitCode } = await sandbox.exec(["sh", "-c", `echo ${count}; exit ${count % 7}`]);
  expect([stdout, exitCode]).toEqual([`${count}\n`, count % 7]);
}

/** The resources of the agent, PID 1, seen by root from inside. */
async function inspect(sandbox: Sandbox) {
  const script = "ls /proc | grep -c '^[0-9]'; ls /proc/1/fd | wc -l; grep VmRSS /proc/1/status";
  const { stdout } = await sandbox.exec(script, { user: "root" });
  const [processes, agentFiles, memory = ""] = stdout.trim().split("\n");
  return { processes, agentFiles: Number(agentFiles), agentKib: Number(/\d+/.exec(memory)?.[0]) };
}
