import type { Socket } from "node:net";
import { connectSocket } from "../../host/unix-socket.ts";

/** Where the agent listens inside. */
export const AGENT_PORT = 52;
/** `OK` and a number of 32 bits. */
const MAX_ANSWER_BYTES = 32;

/** Connects to a port inside of a machine through the socket that Firecracker listens at; rejects when nobody is there. */
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

/** Reads one line and not a byte more: what follows it is the agent's. */
function accepted(socket: Socket, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const settle = (error?: Error) => {
      socket.off("readable", look).off("error", settle).off("end", hungUp).off("close", hungUp);
      signal.removeEventListener("abort", abort);
      if (error === undefined) resolve();
      else reject(error);
    };
    const hungUp = () => settle(new Error("nobody listens at that port inside"));
    const abort = () => settle(signal.reason);
    const look = () => {
      for (;;) {
        const byte: Buffer | null = socket.read(1);
        if (byte === null) return;
        answer += byte.toString("latin1");
        if (answer.endsWith("\n")) {
          return settle(/^OK \d+\n$/.test(answer) ? undefined : new Error(`it answered ${JSON.stringify(answer)}`));
        }
        if (answer.length > MAX_ANSWER_BYTES) return settle(new Error("it answered with something else than OK"));
      }
    };
    socket.on("readable", look).on("error", settle).on("end", hungUp).on("close", hungUp);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });
}
