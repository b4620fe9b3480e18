import type { Socket } from "node:net";
import { type Clock, pause, type Tunnel } from "@sandpiper/core";
import type { FlowReason } from "@sandpiper/protocol";
import { RefusedHost } from "./first-bytes.ts";

export interface PumpOptions {
  readonly tunnel: Pick<Tunnel, "write" | "end" | "close" | "closed">;
  /** What the sandbox sends. A piece is valid only until the next one is asked for. */
  readonly outgoing: AsyncIterable<Uint8Array>;
  readonly socket: Socket;
  readonly clock: Clock;
  /** Count the bytes of a direction and return for how long it must pause. */
  readonly countSent: (bytes: number) => number;
  readonly countReceived: (bytes: number) => number;
  /** Cuts the flow; its reason is a `FlowReason`. */
  readonly signal: AbortSignal;
}

/** What the host may send before the sandbox's channel has accepted it. */
const HIGH_WATER_BYTES = 512 * 1024;

/**
 * Carries bytes between a sandbox and a host until both directions have ended, each by itself. A connection that one side
 * breaks is reset on the other. Resolves with the reason of an end that neither side meant.
 */
export async function pump(options: PumpOptions): Promise<FlowReason | null> {
  const { tunnel, socket, signal } = options;
  const { promise: cut, resolve: cutWith } = Promise.withResolvers<FlowReason>();
  const onAbort = () => cutWith(signal.reason as FlowReason);
  const onError = () => cutWith("reset");
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  socket.on("error", onError);
  tunnel.closed.catch(onError);
  const finished = Promise.all([send(options), receive(options)]).then(
    () => null,
    (thrown) => (thrown instanceof RefusedHost ? thrown.reason : "reset"),
  );
  const reason = await Promise.race([finished, cut]);
  signal.removeEventListener("abort", onAbort);
  if (reason === null) return null;
  tunnel.close();
  // The other side sees a reset, because data may be missing.
  if (reason === "reset") socket.resetAndDestroy();
  else socket.destroy();
  return reason;
}

async function send({ outgoing, socket, clock, countSent, signal }: PumpOptions): Promise<void> {
  for await (const bytes of outgoing) {
    if (bytes.length === 0) continue;
    const waitMs = countSent(bytes.length);
    await written(socket, bytes);
    if (waitMs > 0) await pause(clock, waitMs, signal);
  }
  await new Promise<void>((resolve) => {
    socket.once("close", resolve);
    socket.end(resolve);
  });
}

function receive({ tunnel, socket, clock, countReceived }: PumpOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let unsentBytes = 0;
  let waits = 0;
  let isPaused = false;
  const resume = () => {
    if (!isPaused || unsentBytes > HIGH_WATER_BYTES / 2 || waits > 0) return;
    isPaused = false;
    socket.resume();
  };
  socket.on("data", (bytes: Buffer) => {
    unsentBytes += bytes.length;
    const waitMs = countReceived(bytes.length);
    if (waitMs > 0) {
      waits++;
      clock.schedule(waitMs, () => {
        waits--;
        resume();
      });
    }
    if (waitMs > 0 || unsentBytes > HIGH_WATER_BYTES) {
      isPaused = true;
      socket.pause();
    }
    tunnel.write(bytes).then(() => {
      unsentBytes -= bytes.length;
      resume();
    }, reject);
  });
  socket.once("end", () => tunnel.end().then(resolve, reject));
  return promise;
}

/** Resolves when the host's socket has taken the bytes, whose memory is then reused, or is closed. */
function written(socket: Socket, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off("close", done);
      resolve();
    };
    socket.once("close", done);
    socket.write(bytes, done);
  });
}
