import { type ChildProcess, spawn } from "node:child_process";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";
import type { Qemu } from "./find-qemu.ts";
import { CONSOLE_LOG, MONITOR_SOCKET } from "./machine-arguments.ts";
import { QmpClient } from "./qmp-client.ts";

const QEMU_LOG = "qemu.log";
const RETRY_MS = 2;
const MAX_EXPLANATION_CHARACTERS = 2000;
/**
 * Becomes QEMU, and takes it into each cgroup meanwhile: the kernel lets whoever moves a process wait for milliseconds, in which QEMU
 * loads its libraries. Says so on descriptor 4 once it is there. The one that does it is nobody's child, so that QEMU has no dead one.
 */
const ENTER = `
( ( while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; echo >&4 ) & )
while [ "$1" != -- ]; do shift; done; shift
exec "$@" 4>&-`;

export interface StartMachineOptions {
  readonly qemu: Qemu;
  readonly args: readonly string[];
  /** Where it starts, with its sockets and logs. */
  readonly directory: string;
  /** Files that take a process into a cgroup. */
  readonly cgroupEntrances: readonly string[];
  /** What an incoming machine reads as `fd:3`. */
  readonly stateFile?: string | undefined;
  readonly signal: AbortSignal;
}

export interface StartedMachine {
  readonly pid: number;
  readonly monitor: QmpClient;
}

/** Starts QEMU as a process that outlives this program, and waits until its monitor answers and it is within its limits. */
export async function startMachine(options: StartMachineOptions): Promise<StartedMachine> {
  const { directory, signal } = options;
  signal.throwIfAborted();
  const child = await spawnQemu(options);
  const entered = hasEntered(child);
  let failure: string | undefined;
  child.once("error", (error) => {
    failure = error.message;
  });
  child.once("exit", (code, ended) => {
    failure = ended === null ? `QEMU exited with ${code}` : `QEMU was ended by ${ended}`;
  });
  try {
    for (;;) {
      signal.throwIfAborted();
      if (failure !== undefined) throw startFailed(failure, await explainMachine(directory));
      const monitor = await QmpClient.connect(join(directory, MONITOR_SOCKET), signal).catch(ifNotThereYet);
      if (monitor === undefined) {
        await sleep(RETRY_MS);
        continue;
      }
      if (await entered) return { pid: Number(child.pid), monitor };
      monitor.close();
      throw startFailed("it could not be taken into its cgroup", await explainMachine(directory));
    }
  } catch (error) {
    // It may not be in its cgroup yet, by which it would be found.
    child.kill("SIGKILL");
    await entered;
    throw error;
  }
}

/** Of a connection to a socket that QEMU has not made yet, or has just made, or no longer serves. */
function ifNotThereYet(error: NodeJS.ErrnoException): undefined {
  if (error instanceof SandboxError || error.code === "ENOENT" || error.code === "ECONNREFUSED") return undefined;
  throw error;
}

async function spawnQemu(options: StartMachineOptions): Promise<ChildProcess> {
  const { qemu, args, directory, cgroupEntrances, stateFile } = options;
  await using log = await open(join(directory, QEMU_LOG), "a", 0o600);
  await using state: FileHandle | undefined = stateFile === undefined ? undefined : await open(stateFile, "r");
  const words = ["-c", ENTER, "sh", ...cgroupEntrances, "--", qemu.program, ...qemu.args, ...args];
  const child = spawn("/bin/sh", words, {
    cwd: directory,
    env: { ...qemu.env },
    stdio: ["ignore", log.fd, log.fd, state?.fd ?? "ignore", "pipe"],
    // Neither a Ctrl-C in the terminal nor the end of this program is for the machine.
    detached: true,
  });
  child.unref();
  return child;
}

/** Whether it has been taken into all its cgroups, once that has been tried. */
async function hasEntered(child: ChildProcess): Promise<boolean> {
  const said = child.stdio[4] as Readable | null | undefined;
  const pieces = await said?.toArray().catch(() => []);
  return pieces !== undefined && pieces.length > 0;
}

/** The last words of QEMU and of the guest's kernel. */
export async function explainMachine(directory: string): Promise<string> {
  const logs = [QEMU_LOG, CONSOLE_LOG].map((name) => readFile(join(directory, name), "utf8").catch(() => ""));
  return (await Promise.all(logs)).join("\n").trim().slice(-MAX_EXPLANATION_CHARACTERS);
}

function startFailed(failure: string, explanation: string): SandboxError {
  return new SandboxError("internal", {
    reason: "boot_failed",
    message: `the virtual machine did not start: ${failure}${explanation && `: ${explanation}`}`,
    hint: "run `sandpiper doctor`; if it finds nothing, please report this",
  });
}
