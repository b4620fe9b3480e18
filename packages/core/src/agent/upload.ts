import { type AgentMethod, type AgentParams, type AgentResult, SandboxError } from "@sandpiper/protocol";
import type { AgentCall } from "./agent-call.ts";
import type { AgentClient } from "./agent-client.ts";
import { OutboundStream } from "./outbound-stream.ts";

/** Bytes to send. They are not copied, so a source must not reuse its buffers. */
export type ByteSource = string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

export interface UploadOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long the agent may accept nothing, and how long it may take to answer after the last byte. */
  readonly timeoutMs?: number | undefined;
}

/** Streams a source into a file in constant memory. */
export async function uploadFile(
  client: AgentClient,
  params: AgentParams<"file.write">,
  source: ByteSource,
  options: UploadOptions = {},
): Promise<AgentResult<"file.write">> {
  const timeoutMs = options.timeoutMs ?? client.rpcTimeoutMs;
  const call = client.begin("file.write", params, {
    signal: options.signal,
    timeoutMs: Number.POSITIVE_INFINITY,
    prepare: (opening) => openOutbound(client, opening, timeoutMs),
  });
  const outbound = call.outbound as OutboundStream;
  try {
    await sendAll(outbound, source);
    await outbound.end();
  } catch (thrown) {
    call.cancel(SandboxError.from(thrown));
    throw thrown;
  }
  call.onSettled(client.clock.schedule(timeoutMs, () => call.cancel(client.timeoutError("file.write", timeoutMs))));
  return call.result;
}

/** Adds the stream to the agent to a call. */
export function openOutbound(
  client: AgentClient,
  call: Pick<AgentCall<AgentMethod>, "method" | "outbound" | "sendData" | "sendEnd" | "cancel">,
  stallTimeoutMs: number | undefined,
): void {
  call.outbound = new OutboundStream({
    clock: client.clock,
    stallTimeoutMs,
    write: (bytes) => call.sendData(bytes),
    writeEnd: () => call.sendEnd(),
    stalled: () => call.cancel(client.timeoutError(call.method, stallTimeoutMs ?? 0)),
  });
}

async function sendAll(outbound: OutboundStream, source: ByteSource): Promise<void> {
  if (typeof source === "string") return outbound.send(new TextEncoder().encode(source));
  if (source instanceof Uint8Array) return outbound.send(source);
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  let isExhausted = false;
  try {
    for (;;) {
      // A source that never yields must not outlive a failed call.
      const next = await outbound.until(Promise.resolve(iterator.next()));
      if (next.done) {
        isExhausted = true;
        return;
      }
      await outbound.send(next.value);
    }
  } finally {
    if (!isExhausted) Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
