import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { AGENT_PORT, connectVsock } from "./vsock-connection.ts";

const RETRY_MS = 10;

/** Connects to the agent of a machine that may still boot: until it listens, every attempt is hung up on. */
export async function untilConnected(path: string, signal: AbortSignal): Promise<Socket> {
  for (;;) {
    try {
      return await connectVsock(path, AGENT_PORT, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (isNobodyThere(error)) throw error;
    }
    await sleep(RETRY_MS);
  }
}

/** The socket is Firecracker's, and there for as long as its process is. */
function isNobodyThere(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOENT" || code === "ECONNREFUSED";
}
