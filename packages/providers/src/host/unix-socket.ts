import { connect, type Socket } from "node:net";

/** Connects to an existing socket; rejects when no process listens on it. */
export function connectSocket(path: string, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    const abort = () => {
      socket.destroy();
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort, { once: true });
    const settle = () => {
      signal.removeEventListener("abort", abort);
      socket.off("error", fail);
    };
    const fail = (error: Error) => {
      settle();
      reject(error);
    };
    socket.on("error", fail);
    socket.once("connect", () => {
      settle();
      resolve(socket);
    });
  });
}
