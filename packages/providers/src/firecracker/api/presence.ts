import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connectSocket } from "../../host/unix-socket.ts";

const PATIENCE_MS = 10_000;
const AGAIN_MS = 500;

/** Holds a connection to a machine's API that says nothing: its end is that of the process, which nobody here is the parent of. */
export class Presence {
  /** Resolves when nobody listens at the socket any more, or nobody waits for that. */
  readonly ended: Promise<void>;
  readonly #path: string;
  #socket: Socket | undefined;
  #isStopped = false;

  constructor(path: string) {
    this.#path = path;
    this.ended = this.#watch();
  }

  stop(): void {
    this.#isStopped = true;
    this.#socket?.destroy();
  }

  async #watch(): Promise<void> {
    for (;;) {
      const socket = await connectSocket(this.#path, AbortSignal.timeout(PATIENCE_MS)).catch((error: Error) => error);
      if (this.#isStopped && !(socket instanceof Error)) socket.destroy();
      if (this.#isStopped) return;
      if (!(socket instanceof Error)) {
        this.#socket = socket;
        await closed(socket);
        continue;
      }
      // A socket whose queue is full is not one that is gone.
      if (isGone(socket)) return;
      await sleep(AGAIN_MS);
    }
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    socket.resume();
    socket.unref();
  });
}

function isGone(error: Error): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOENT" || code === "ECONNREFUSED" || code === "ENOTDIR";
}
