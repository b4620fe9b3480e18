import type { Tunnel } from "@sandpiper/core";
import { type ClientMessage, encodeDataFrame } from "@sandpiper/protocol";
import type { SocketStream, StreamEnd, StreamSubject } from "./socket-stream.ts";

/** Small, so that many streams share one connection fairly. */
const MAX_FRAME_BYTES = 256 * 1024;

/** Connects to a port of a sandbox and copies both directions, each as far as its receiver allows. Each can end alone. */
export async function runConnectStream(
  { stream, live }: StreamSubject,
  { port }: Extract<ClientMessage, { kind: "connect" }>,
): Promise<StreamEnd | undefined> {
  await using tunnel = await live.dial(port, { signal: stream.signal });
  stream.opened();
  await Promise.all([fromClient(stream, tunnel), toClient(stream, tunnel)]);
  return stream.signal.aborted ? undefined : {};
}

async function fromClient(stream: SocketStream, tunnel: Tunnel): Promise<void> {
  for await (const { offset, bytes, isLast } of stream.stdin ?? []) {
    if (isLast) return await tunnel.end();
    await tunnel.write(bytes);
    stream.ack(offset + bytes.length);
  }
}

async function toClient(stream: SocketStream, tunnel: Tunnel): Promise<void> {
  let offset = 0;
  for await (const bytes of tunnel.readable) {
    for (let at = 0; at < bytes.length; ) {
      await stream.credit.some();
      await stream.socket.deliver(() => {
        const size = Math.min(stream.credit.amount, bytes.length - at, MAX_FRAME_BYTES);
        if (stream.signal.aborted || size <= 0) return undefined;
        stream.credit.take(size);
        const piece = bytes.subarray(at, at + size);
        at += size;
        offset += size;
        return encodeDataFrame({ stream: stream.number, source: "port", offset: offset - size, bytes: piece });
      });
      if (stream.signal.aborted) return;
    }
  }
  stream.finished(offset);
}
