import type { OutputChunk, ProcessHandle } from "@sandpiper/core";
import { type ClientMessage, encodeDataFrame } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { SocketStream, StreamEnd, StreamSubject } from "./socket-stream.ts";

type OpenProcess = Extract<ClientMessage, { kind: "process" }>;

/** Small enough that many streams take turns quickly on one connection. */
const MAX_FRAME_BYTES = 256 * 1024;

/** Passes a process's output on at the client's pace: what is not asked for stays with the agent. */
export async function runProcessStream(
  { stream, live }: StreamSubject,
  message: OpenProcess,
): Promise<StreamEnd | undefined> {
  const process = await processOf(live, message);
  stream.signal.addEventListener("abort", () => process.detach(), { once: true });
  if (stream.signal.aborted) {
    process.detach();
    return undefined;
  }
  stream.opened({ pid: process.pid });
  let offset = message.offset;
  for await (const chunk of process.output) {
    live.touch("output");
    await pass(stream, chunk);
    if (stream.signal.aborted) return undefined;
    offset = chunk.offset + chunk.bytes.length;
  }
  if (stream.signal.aborted) return undefined;
  const { exitCode, signal, timedOut, outOfMemory, durationMs } = await process.wait();
  return { exit: { exitCode, signal, timedOut, outOfMemory, durationMs }, offset };
}

/** Whoever has had some of its output has seen it run, so it is never started a second time for them. */
async function processOf(live: LiveSandbox, { process, spawn, offset }: OpenProcess): Promise<ProcessHandle> {
  // Each piece is copied into its frames before the next is asked for.
  const lendsMemory = true;
  if (spawn === undefined || offset > 0) return await live.attach(process, offset, { lendsMemory });
  return await live.start({ ...spawn, process }, { isRead: true, lendsMemory });
}

async function pass(stream: SocketStream, { source, bytes, offset }: OutputChunk): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    await stream.credit.some();
    await stream.socket.deliver(() => {
      const size = Math.min(stream.credit.amount, bytes.length - at, MAX_FRAME_BYTES);
      if (stream.signal.aborted || size <= 0) return undefined;
      stream.credit.take(size);
      const piece = bytes.subarray(at, at + size);
      const frame = encodeDataFrame({ stream: stream.number, source, offset: offset + at, bytes: piece });
      at += size;
      return frame;
    });
    if (stream.signal.aborted) return;
  }
}
