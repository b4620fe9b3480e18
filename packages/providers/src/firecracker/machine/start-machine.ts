import { spawn } from "node:child_process";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { lastOutput, watchStart } from "../../host/emulator-start.ts";
import { ApiClient } from "../api/api-client.ts";
import { machineDirectory } from "./jail.ts";
import { API_SOCKET, CONSOLE_LOG, MACHINE_LOG } from "./machine-files.ts";

const RETRY_MS = 2;
/** Enters each cgroup before it becomes the jailer, so that no process runs outside of its cgroup. */
const ENTER = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; shift; exec "$@"';

export interface StartMachineOptions {
  readonly command: readonly string[];
  /** The machine's directory, with its jail. */
  readonly directory: string;
  /** Files that move a process into a cgroup when its id is written to them. */
  readonly cgroupEntrances: readonly string[];
  readonly signal: AbortSignal;
}

/** Starts Firecracker as a process that outlives this program, and waits until its API answers. */
export async function startMachine(options: StartMachineOptions): Promise<ApiClient> {
  const { command, directory, cgroupEntrances, signal } = options;
  signal.throwIfAborted();
  // Firecracker's standard output is the guest's serial console.
  await using console = await open(join(directory, CONSOLE_LOG), "a", 0o600);
  const child = spawn("/bin/sh", ["-c", ENTER, "sh", ...cgroupEntrances, "--", ...command], {
    cwd: directory,
    env: {},
    stdio: ["ignore", console.fd, console.fd],
    // Neither Ctrl-C in the terminal nor the end of this program may reach the machine.
    detached: true,
  });
  child.unref();
  const requireRunning = watchStart(child, "Firecracker", () => explainMachine(directory));
  const api = new ApiClient(join(machineDirectory(directory), API_SOCKET));
  for (;;) {
    signal.throwIfAborted();
    await requireRunning();
    const info = await api.describe(signal).catch(() => undefined);
    if (info !== undefined) return api;
    await sleep(RETRY_MS);
  }
}

/** The logs of Firecracker and of the guest's kernel. */
export function logsOf(directory: string): string[] {
  return [join(machineDirectory(directory), MACHINE_LOG), join(directory, CONSOLE_LOG)];
}

/** The last output of both. */
export function explainMachine(directory: string): Promise<string> {
  return lastOutput(logsOf(directory));
}
