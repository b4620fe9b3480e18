import type { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";
import { lastOutput, startFailed, watchStart } from "../../host/emulator-start.ts";
import { connectSocket } from "../../host/unix-socket.ts";
import { QmpClient } from "../qmp/qmp-client.ts";
import { AGENT_SOCKET, CONSOLE_LOG, MONITOR_SOCKET } from "./machine-arguments.ts";
import { prepareMigration } from "./migration.ts";
import { type Becoming, hasEntered, QEMU_LOG, type WaitingShell } from "./waiting-shell.ts";

const RETRY_MS = 2;

export interface StartMachineOptions extends Becoming {
  readonly shell: WaitingShell;
  readonly ignoresShared: boolean;
  readonly signal: AbortSignal;
}

export interface StartedMachine {
  readonly pid: number;
  readonly monitor: QmpClient;
  /**
   * The connection to the agent, opened before the guest runs, so that the guest finds its port connected as it was
   * saved.
   */
  readonly agent: Socket;
}

/** Starts QEMU as a process that outlives this program; waits until its monitor answers and its cgroup limits apply. */
export async function startMachine(options: StartMachineOptions): Promise<StartedMachine> {
  const { directory, shell, signal } = options;
  signal.throwIfAborted();
  const child = shell.become(options);
  const entered = hasEntered(child);
  const requireRunning = watchStart(child, "QEMU", () => explainMachine(directory));
  try {
    for (;;) {
      signal.throwIfAborted();
      await requireRunning();
      const connected = await connectMachine(options).catch(ifNotThereYet);
      if (connected === undefined) {
        await sleep(RETRY_MS);
        continue;
      }
      if (await entered) return { pid: Number(child.pid), ...connected };
      connected.monitor.close();
      throw startFailed("it could not be taken into its cgroup", await explainMachine(directory));
    }
  } catch (error) {
    // It may not be in its cgroup yet, so removing the cgroup would miss it.
    child.kill("SIGKILL");
    await entered;
    throw error;
  }
}

/** QEMU opens its sockets while it still creates devices, so the first commands are sent in the meantime. */
async function connectMachine(
  options: Pick<StartMachineOptions, "directory" | "ignoresShared" | "signal">,
): Promise<Omit<StartedMachine, "pid">> {
  const { directory, signal } = options;
  let agent!: Socket;
  const monitor = await QmpClient.connect(join(directory, MONITOR_SOCKET), signal, async (client) => {
    const prepared = prepareMigration(client, options);
    [agent] = await Promise.all([connectAgent(directory, signal), prepared]);
  });
  return { monitor, agent };
}

async function connectAgent(directory: string, signal: AbortSignal): Promise<Socket> {
  const agent = await connectSocket(join(directory, AGENT_SOCKET), signal);
  // The user of the connection handles its end; before that QEMU's exit explains more.
  agent.on("error", () => {});
  return agent;
}

/** Ignores errors of a socket that QEMU has not opened yet, has just opened, or no longer serves. */
function ifNotThereYet(error: NodeJS.ErrnoException): undefined {
  const isGone = error instanceof SandboxError && error.reason === "monitor_gone";
  if (isGone || error.code === "ENOENT" || error.code === "ECONNREFUSED") return undefined;
  throw error;
}

/** The last output of QEMU and of the guest's kernel. */
export function explainMachine(directory: string): Promise<string> {
  return lastOutput([QEMU_LOG, CONSOLE_LOG].map((name) => join(directory, name)));
}
