import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Connects to an existing socket; rejects when no process listens on it. */
export async function connectSocket(path: string, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const socket = connect({ path });
  try {
    await once(socket, "connect", { signal });
    return socket;
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw error;
  }
}
