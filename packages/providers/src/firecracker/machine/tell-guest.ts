import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { AgentClient, type Clock, SandboxError } from "@sandpiper/core";
import { VsockChannel } from "../vsock/vsock-channel.ts";

/** The agent reads, applies and removes it when it is thawed. */
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
 * Gives a restored machine its identity and the current time. Without this, all machines restored from one checkpoint
 * share its clock and random numbers. The agent is quiesced again afterwards.
 */
export async function tellGuest(agent: Socket, options: TellGuestOptions): Promise<void> {
  const { hostname, maxProcesses, clock, signal } = options;
  const channel = new VsockChannel(agent);
  const client = await AgentClient.open({ channel, needsResync: false }, { signal, rpcTimeoutMs: TIMEOUT_MS });
  try {
    const seed = randomBytes(SEED_BYTES).toString("hex");
    const words = [`hostname ${hostname}`, `seed ${seed}`, `processes ${maxProcesses}`].map((line) => `'${line}'`);
    await run(client, `umask 077; mkdir -p /run/sandpiper && printf '%s\\n' ${words.join(" ")} > ${INSTANCE_FILE}`);
    // Last, because the first command of a restored machine is slow. The agent adds the time that passes after the write.
    await run(client, `printf 'time %s\\n' ${clock.now().getTime()} >> ${INSTANCE_FILE}`);
    await client.quiesce({ signal });
    // The thaw makes the agent apply the file.
    await client.thaw();
    await client.quiesce({ signal });
  } finally {
    client.close();
  }
}

async function run(client: AgentClient, cmd: string): Promise<void> {
  const { exit_code: exitCode, stderr } = await client.exec(cmd, { user: "root" });
  if (exitCode !== 0) throw notConfigured(stderr);
}

function notConfigured(why: string): SandboxError {
  return new SandboxError("restore_failed", {
    message: `the restored machine could not be given its hostname, seed and time: ${why.trim()}`,
    hint: "check that root can write to /run in the sandbox",
  });
}
