import { SandboxError, type SpawnParams } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { type BegunReading, ProcessHandle } from "./process-handle.ts";
import { beginOutput, type ReadOutputOptions } from "./read-output.ts";

export interface StartProcessOptions extends Pick<ReadOutputOptions, "client" | "lendsMemory"> {
  readonly params: SpawnParams & { readonly process: string };
  /** Whether its output will be read. */
  readonly isRead: boolean;
}

/** Starts a process, and requests its output and exit in the same write if they will be read. */
export async function startProcess(options: StartProcessOptions): Promise<ProcessHandle> {
  const { params, isRead, lendsMemory, client } = options;
  const open = await client();
  const { process: id } = params;
  const spawn = open.begin("process.spawn", params);
  const reading = isRead ? beginReading(open, id, lendsMemory) : undefined;
  try {
    const { pid } = await spawn.result;
    return new ProcessHandle({ id, pid, offset: 0, client, lendsMemory, begun: reading?.begun });
  } catch (thrown) {
    // If a process with this id already exists, its output does not belong to this caller.
    reading?.cancel(SandboxError.from(thrown));
    throw thrown;
  }
}

function beginReading(
  client: AgentClient,
  process: string,
  lendsMemory: boolean,
): { begun: BegunReading; cancel(error: SandboxError): void } {
  const detached = new AbortController();
  const output = beginOutput(client, { process, offset: 0, signal: detached.signal, lendsMemory });
  const wait = client.begin("process.wait", { process }, { timeoutMs: Number.POSITIVE_INFINITY });
  return {
    begun: { output, exit: wait.result, detached },
    cancel(error) {
      detached.abort();
      wait.cancel(error);
    },
  };
}
