import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const PIECE_BYTES = 16 * 1024;

export interface CuttingProxyOptions {
  /** The interval at which all connections are cut. */
  readonly cutEveryMs: number;
  /** The bandwidth of responses, so that no long one fits between two cuts. */
  readonly bytesPerMs: number;
}

/** An unreliable network between a client and a node. */
export class CuttingProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #timer: NodeJS.Timeout;
  readonly #sockets: Set<Socket>;
  #cuts = 0;

  private constructor(server: Server, sockets: Set<Socket>, { cutEveryMs }: CuttingProxyOptions) {
    this.#server = server;
    this.#sockets = sockets;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.#timer = setInterval(() => this.cut(), cutEveryMs);
  }

  static async start(target: string, options: CuttingProxyOptions): Promise<CuttingProxy> {
    const { hostname, port } = new URL(target);
    const sockets = new Set<Socket>();
    const server = createServer((client) => {
      const node = connect(Number(port), hostname);
      for (const socket of [client, node]) {
        sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          sockets.delete(socket);
          client.destroy();
          node.destroy();
        });
      }
      client.pipe(node);
      void passSlowly(node, client, options.bytesPerMs);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new CuttingProxy(server, sockets, options);
  }

  /** The number of connections that were cut. */
  get cuts(): number {
    return this.#cuts;
  }

  cut(): void {
    this.#cuts += this.#sockets.size / 2;
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}

async function passSlowly(from: Socket, to: Socket, bytesPerMs: number): Promise<void> {
  try {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        const piece = chunk.subarray(at, at + PIECE_BYTES);
        if (!to.write(piece)) await once(to, "drain");
        if (piece.length === PIECE_BYTES) await sleep(PIECE_BYTES / bytesPerMs);
      }
    }
    to.end();
  } catch {
    to.destroy();
  }
}
