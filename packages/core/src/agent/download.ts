import type { AgentMethod, AgentParams, AgentResult } from "@sandpiper/protocol";
import type { AgentClient } from "./agent-client.ts";
import { DEFAULT_WINDOW_BYTES, InboundFlow } from "./inbound-flow.ts";
import { InboundStream } from "./inbound-stream.ts";
import { LentMemory } from "./lent-memory.ts";

/** Calls whose answer is preceded by a stream from the agent. */
export type DownloadMethod = "process.output" | "file.read" | "file.list" | "file.watch" | "net.serve" | "port.watch";

export interface DownloadOptions<M extends AgentMethod> {
  readonly signal?: AbortSignal | undefined;
  /** Bytes that may be in flight or unread. */
  readonly windowBytes?: number | undefined;
  /** The size of buffers to reuse when the reader asks for the next chunk. */
  readonly lentBufferBytes?: number | undefined;
  /** How long the agent may send nothing while the reader waits; Infinity for streams that may rest. */
  readonly idleTimeoutMs?: number | undefined;
  /** Journal offset of the first byte. */
  readonly journalOffset?: number | undefined;
  /** The final offset in the answer, which reveals missing bytes. */
  readonly endOffset?: ((result: AgentResult<M>) => number) | undefined;
}

/** Streams from the agent at the reader's pace. Leaving the loop early cancels the call. */
export function download<M extends DownloadMethod>(
  client: AgentClient,
  method: M,
  params: Omit<AgentParams<M>, "window">,
  options: DownloadOptions<M> = {},
): InboundStream {
  const windowBytes = options.windowBytes ?? DEFAULT_WINDOW_BYTES;
  const { lentBufferBytes } = options;
  const idleTimeoutMs = options.idleTimeoutMs ?? client.rpcTimeoutMs;
  let stream: InboundStream | undefined;
  client.begin(method, { ...params, window: windowBytes } as AgentParams<M>, {
    signal: options.signal,
    timeoutMs: Number.POSITIVE_INFINITY,
    prepare(call) {
      stream = new InboundStream({
        flow: new InboundFlow({
          windowBytes,
          journalOffset: options.journalOffset,
          grant: (bytes) => call.grant(bytes),
        }),
        memory: lentBufferBytes === undefined ? undefined : new LentMemory(windowBytes, lentBufferBytes),
        cancel: (error) => call.cancel(error),
        idle:
          idleTimeoutMs === Number.POSITIVE_INFINITY
            ? undefined
            : {
                clock: client.clock,
                timeoutMs: idleTimeoutMs,
                error: () => client.timeoutError(method, idleTimeoutMs),
              },
      });
      call.inbound = stream;
      call.endOffset = options.endOffset;
    },
  });
  return stream as InboundStream;
}
