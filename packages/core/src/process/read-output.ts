import type { AgentClient } from "../agent/agent-client.ts";
import { download } from "../agent/download.ts";
import { SandboxError } from "../sandbox-error.ts";
import type { OutputChunk } from "./process-handle.ts";

export interface ReadOutputOptions {
  readonly process: string;
  readonly offset: number;
  readonly client: () => Promise<AgentClient>;
  /** Ends the reading without an error. */
  readonly signal: AbortSignal;
}

/** Reads a process's journal to its end, and goes on at the same byte when the channel was lost in between. */
export async function* readOutput(options: ReadOutputOptions): AsyncGenerator<OutputChunk, void, undefined> {
  const { process, signal } = options;
  let offset = options.offset;
  while (!signal.aborted) {
    try {
      const chunks = download(
        await options.client(),
        "process.output",
        { process, offset },
        {
          signal,
          journalOffset: offset,
          idleTimeoutMs: Number.POSITIVE_INFINITY,
          endOffset: (result) => result.offset,
        },
      );
      for await (const { bytes, source, offset: at, dropped } of chunks) {
        offset = at + bytes.length;
        yield { source: source ?? "stdout", bytes, offset: at, dropped };
      }
      return;
    } catch (thrown) {
      if (signal.aborted) return;
      if (!(thrown instanceof SandboxError && thrown.reason === "channel_closed")) throw thrown;
    }
  }
}
