import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../../host/has-code.ts";
import { connectSocket } from "../../host/unix-socket.ts";

/** The port that the agent listens on in the guest. */
export const AGENT_PORT = 52;
/** The length of `OK` and a 32-bit number. */
const MAX_ANSWER_BYTES = 32;
const RETRY_MS = 10;
/** How long the first attempt may take; each next one may take twice as long. */
const FIRST_ATTEMPT_MS = 500;

/** Connects to a port in the guest through Firecracker's socket; rejects when no program listens on the port. */
export async function connectVsock(path: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = await connectSocket(path, signal);
  try {
    socket.write(`CONNECT ${port}\n`);
    await accepted(socket, signal);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Reads exactly one line, because the bytes after it belong to the agent's stream. */
function accepted(socket: Socket, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const settle = (error?: Error) => {
      socket.off("readable", look).off("error", settle).off("end", hungUp).off("close", hungUp);
      signal.removeEventListener("abort", abort);
      if (error === undefined) resolve();
      else reject(error);
    };
    const hungUp = () => settle(new Error("no program in the guest listens on the port"));
    const abort = () => settle(signal.reason);
    const look = () => {
      for (;;) {
        const byte: Buffer | null = socket.read(1);
        if (byte === null) return;
        answer += byte.toString("latin1");
        if (answer.endsWith("\n")) {
          return settle(
            /^OK \d+\n$/.test(answer) ? undefined : new Error(`Firecracker answered ${JSON.stringify(answer)}`),
          );
        }
        if (answer.length > MAX_ANSWER_BYTES) return settle(new Error("Firecracker did not answer with OK"));
      }
    };
    socket.on("readable", look).on("error", settle).on("end", hungUp).on("close", hungUp);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });
}

/**
 * Connects to the agent of a machine that may still boot. Firecracker does not answer until the guest's driver is loaded,
 * and closes each connection until the agent listens.
 */
export async function untilConnected(path: string, signal: AbortSignal): Promise<Socket> {
  let limitMs = FIRST_ATTEMPT_MS;
  for (;;) {
    const limit = AbortSignal.timeout(limitMs);
    try {
      return await connectVsock(path, AGENT_PORT, AbortSignal.any([signal, limit]));
    } catch (error) {
      if (limit.aborted) limitMs *= 2;
      signal.throwIfAborted();
      // Firecracker owns the socket, so a missing socket means that its process has ended.
      if (hasCode(error, "ENOENT", "ECONNREFUSED")) throw error;
    }
    await sleep(RETRY_MS);
  }
}
