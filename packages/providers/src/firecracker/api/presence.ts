import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../../host/has-code.ts";
import { connectSocket } from "../../host/unix-socket.ts";

const PATIENCE_MS = 10_000;
const AGAIN_MS = 500;

/**
 * Holds an idle connection to a machine's API. Its end means that the process has ended, which is not a child of this
 * program.
 */
export class Presence {
  /** Resolves when the socket is gone, or after `stop`. */
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
        const opened = performance.now();
        await closed(socket);
        // Firecracker closes connections at once while ten others are open.
        if (performance.now() - opened < AGAIN_MS) await sleep(AGAIN_MS);
        continue;
      }
      // A socket with a full queue still exists.
      if (hasCode(socket, "ENOENT", "ECONNREFUSED", "ENOTDIR")) return;
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
