import type { OutputChunk, ProcessHandle } from "@sandpiper/core";
import { type ClientMessage, encodeDataFrame } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { SocketStream, StreamEnd, StreamSubject } from "./socket-stream.ts";

type OpenProcess = Extract<ClientMessage, { kind: "process" }>;

/** Small, so that many streams share one connection fairly. */
const MAX_FRAME_BYTES = 256 * 1024;

/** Sends a process's output as the client's credit allows. The rest stays with the agent. */
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
    await send(stream, chunk);
    if (stream.signal.aborted) return undefined;
    offset = chunk.offset + chunk.bytes.length;
  }
  if (stream.signal.aborted) return undefined;
  const { exitCode, signal, timedOut, outOfMemory, durationMs } = await process.wait();
  return { exit: { exitCode, signal, timedOut, outOfMemory, durationMs }, offset };
}

/** A client with an offset has seen the process run, so the process is not started a second time. */
async function processOf(live: LiveSandbox, { process, spawn, offset, repeated }: OpenProcess): Promise<ProcessHandle> {
  // Each chunk is copied into its frames before the next one is read.
  const lendsMemory = true;
  if (spawn === undefined || offset > 0) return await live.attach(process, offset, { lendsMemory });
  return await live.start({ ...spawn, process }, { isRead: true, lendsMemory, isRepeated: repeated });
}

async function send(stream: SocketStream, { source, bytes, offset }: OutputChunk): Promise<void> {
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
