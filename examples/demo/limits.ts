import assert from "node:assert/strict";
import { type Sandbox, SandboxError } from "@sandpiper/core";
import { createDemoSandbox } from "./lifetime.ts";
import { printStep } from "./terminal.ts";

const forkUntilRefused = `
import os, signal
children = []
try:
    while True:
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)
except OSError as error:
    print(f"{len(children)} processes, then: {error.strerror}")
for child in children:
    os.kill(child, signal.SIGKILL)
`;

export async function showTimeLimit(sandbox: Sandbox): Promise<void> {
  const result = await sandbox.exec("sleep 60", { timeoutMs: 200 });
  assert.equal(result.timedOut, true);
  printStep("time", "`sleep 60` with a limit of 200 ms: killed, reported as timed out", result.durationMs);
}

export async function showDiskLimit(sandbox: Sandbox): Promise<void> {
  const { diskMib } = sandbox.config;
  const result = await sandbox.exec(`head -c ${2 * diskMib}M /dev/zero > /tmp/filler; s=$?; rm /tmp/filler; exit $s`);
  assert.match(result.stderr, /No space left on device/);
  printStep("disk", `${2 * diskMib} MiB on a ${diskMib} MiB disk: no space left on device`, result.durationMs);
}

export async function showProcessLimit(sandbox: Sandbox): Promise<void> {
  const result = await sandbox.executeCode("python", forkUntilRefused);
  const count = Number(/^(\d+) processes, then: Resource temporarily unavailable$/m.exec(result.stdout)?.[1]);
  assert.ok(count > 0 && count <= sandbox.config.maxProcesses, result.stdout + result.stderr);
  printStep("processes", `a fork loop: ${result.stdout.trim()}`, result.durationMs);
}

/** Uses its own sandbox: a program that exceeds the memory limit may end the whole sandbox, but nothing else. */
export async function showMemoryLimit(): Promise<void> {
  await using sandbox = await createDemoSandbox({ memoryMib: 64 });
  const startedAtMs = performance.now();
  const hog = `x = b"x" * (256 << 20); print(len(x))`;
  const wasKilled = await sandbox.executeCode("python", hog).then(
    (result) => result.outOfMemory,
    (error) => SandboxError.from(error).reason === "out_of_memory",
  );
  assert.equal(wasKilled, true);
  const text = "256 MiB in a 64 MiB sandbox: killed, reported as out of memory";
  printStep("memory", text, performance.now() - startedAtMs);
}
