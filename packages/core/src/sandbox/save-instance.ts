import type { AgentClient } from "../agent/agent-client.ts";
import type { EarlierProcesses } from "../process/earlier-processes.ts";
import type { CheckpointOptions, Instance } from "../provider.ts";

export interface CheckpointTiming {
  /** How long its processes were paused. */
  readonly pausedMs: number;
}

export interface SaveInstanceOptions extends CheckpointOptions {
  readonly directory: string;
  /** Set if the checkpoint does not keep the sandbox's processes. */
  readonly earlier?: EarlierProcesses | undefined;
}

/** Saves an instance while its agent is quiesced. On failure, and with `keepsRunning`, the agent continues. */
export async function saveInstance(
  instance: Instance,
  client: AgentClient,
  { earlier, ...options }: SaveInstanceOptions,
): Promise<CheckpointTiming> {
  const { clock } = client;
  const startedAtMs = clock.monotonicMs();
  let resuming: Promise<CheckpointTiming> | undefined;
  const resume = async () => {
    await client.thaw();
    return { pausedMs: clock.monotonicMs() - startedAtMs };
  };
  const onCaptured = () => {
    resuming ??= options.keepsRunning ? resume() : undefined;
    // Awaited below, once the checkpoint is complete.
    resuming?.catch(() => {});
  };
  try {
    // A restored network stack may not know which program a connection belonged to, and could not end it.
    if (!options.keepsRunning) client.resetFlows();
    const [processes] = await Promise.all([earlier?.next(client), client.quiesce()]);
    await instance.checkpoint(options.directory, { ...options, onCaptured, processes });
  } catch (thrown) {
    // Harmless if it was not quiesced yet.
    await (resuming ?? client.thaw()).catch(() => {});
    throw thrown;
  }
  if (options.keepsRunning) return await (resuming ?? resume());
  return { pausedMs: clock.monotonicMs() - startedAtMs };
}
