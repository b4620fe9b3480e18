import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { AgentClient, type Clock, SandboxError } from "@sandpiper/core";
import { VsockChannel } from "../vsock/vsock-channel.ts";

/** Read, applied and removed by the agent when it wakes up. */
const INSTANCE_FILE = "/run/sandpiper/instance";
const SEED_BYTES = 64;
const TIMEOUT_MS = 10_000;

export interface TellGuestOptions {
  readonly hostname: string;
  readonly maxProcesses: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Tells a machine that was saved who it is now, and what time it is: it has the clock and the random numbers of the moment
 * when it was saved, like every other that was restored from it. Its agent is quiesced again afterwards.
 */
export async function tellGuest(agent: Socket, options: TellGuestOptions): Promise<void> {
  const { hostname, maxProcesses, clock, signal } = options;
  const channel = new VsockChannel(agent);
  const client = await AgentClient.open({ channel, needsResync: false }, { signal, rpcTimeoutMs: TIMEOUT_MS });
  try {
    const seed = randomBytes(SEED_BYTES).toString("hex");
    const lines = [
      `hostname ${hostname}`,
      `seed ${seed}`,
      `processes ${maxProcesses}`,
      `time ${clock.now().getTime()}`,
    ];
    const words = lines.map((line) => `'${line}'`).join(" ");
    const cmd = `umask 077; mkdir -p /run/sandpiper && printf '%s\\n' ${words} > ${INSTANCE_FILE}`;
    const { exit_code: exitCode, stderr } = await client.exec(cmd, { user: "root" });
    if (exitCode !== 0) throw notTold(stderr);
    await client.quiesce({ signal });
    // It wakes up, and does what the file says.
    await client.thaw();
    await client.quiesce({ signal });
  } finally {
    client.close();
  }
}

function notTold(why: string): SandboxError {
  return new SandboxError("internal", {
    reason: "restore_failed",
    message: `the restored machine could not be told its hostname, its seed and the time: ${why.trim()}`,
    hint: "see that /run of the sandbox is writable for root",
  });
}
