import { type OutputChunk, SandboxError } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { download } from "../agent/download.ts";
import type { InboundStream } from "../agent/inbound-stream.ts";

/** The largest piece of output that an agent sends. */
const OUTPUT_PIECE_BYTES = 256 * 1024;

export interface ReadOutputOptions {
  readonly process: string;
  readonly offset: number;
  /** An open client, also after a channel was lost. */
  readonly client: () => Promise<AgentClient>;
  /** A chunk is valid only until the reader asks for the next one. */
  readonly lendsMemory: boolean;
  /** Ends the reading without an error. */
  readonly signal: AbortSignal;
  /** An open stream that starts at `offset`. */
  readonly begun?: InboundStream | undefined;
}

/** Reads a process's journal to its end, and continues at the same byte after a lost channel. */
export async function* readOutput(options: ReadOutputOptions): AsyncGenerator<OutputChunk, void, undefined> {
  const { process, signal, lendsMemory } = options;
  let { offset, begun } = options;
  while (!signal.aborted) {
    try {
      const chunks = begun ?? beginOutput(await options.client(), { process, offset, signal, lendsMemory });
      begun = undefined;
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

export function beginOutput(
  client: AgentClient,
  { process, offset, signal, lendsMemory }: Pick<ReadOutputOptions, "process" | "offset" | "signal" | "lendsMemory">,
): InboundStream {
  return download(
    client,
    "process.output",
    { process, offset },
    {
      signal,
      journalOffset: offset,
      lentBufferBytes: lendsMemory ? OUTPUT_PIECE_BYTES : undefined,
      idleTimeoutMs: Number.POSITIVE_INFINITY,
      endOffset: (result) => result.offset,
    },
  );
}
