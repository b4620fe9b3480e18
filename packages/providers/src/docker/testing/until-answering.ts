import type { ChildProcess } from "node:child_process";
import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const ATTEMPTS = 400;
const INTERVAL_MS = 50;

/** Waits until the engine in a child process answers on its socket. */
export async function untilAnswering(socketPath: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`the engine exited with code ${child.exitCode}`);
    if (await isAnswering(socketPath)) return;
    await sleep(INTERVAL_MS);
  }
  throw new Error(`no engine answers on ${socketPath}`);
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
