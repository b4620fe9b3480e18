import type { ChildProcess } from "node:child_process";
import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const TIMEOUT_MS = 30_000;
const INTERVAL_MS = 20;

/** Waits until the check returns true. Unlike `expect.poll` it works outside of Vitest. */
export async function eventually(check: () => Promise<boolean> | boolean, failure: string): Promise<void> {
  const end = performance.now() + TIMEOUT_MS;
  while (!(await check())) {
    if (performance.now() > end) throw new Error(failure);
    await sleep(INTERVAL_MS);
  }
}

/** Waits until the engine in a child process answers on its socket. */
export async function untilAnswering(socketPath: string, child: ChildProcess): Promise<void> {
  await eventually(() => {
    if (child.exitCode !== null) throw new Error(`the engine exited with code ${child.exitCode}`);
    return isAnswering(socketPath);
  }, `no engine answers on ${socketPath}`);
}

function isAnswering(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ socketPath, path: "/_ping", agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("error", () => resolve(false));
  });
}
