import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface NetworkTrouble {
  /** `cut` resets connections and refuses new ones; `stall` passes nothing on, like a network that drops packets. */
  readonly kind: "cut" | "delay" | "stall";
  readonly delayMs: number;
}

/** A network in front of a node, which a test can disturb. */
export class NetworkProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #trouble: NetworkTrouble | undefined;
  #healed = Promise.withResolvers<void>();

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (incoming) => this.#accept(incoming));
  }

  /** In front of a port on loopback. */
  static async start(target: number): Promise<NetworkProxy> {
    const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new NetworkProxy(server, target);
  }

  disturb(trouble: NetworkTrouble): void {
    this.#trouble = trouble;
    if (trouble.kind === "cut") this.#reset();
  }

  heal(): void {
    this.#trouble = undefined;
    this.#healed.resolve();
    this.#healed = Promise.withResolvers();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.heal();
    this.#server.close();
    this.#reset();
    await once(this.#server, "close");
  }

  #accept(incoming: Socket): void {
    if (this.#trouble?.kind === "cut") {
      incoming.on("error", () => {});
      incoming.resetAndDestroy();
      return;
    }
    const outgoing = connect({ port: this.#target, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    for (const socket of [incoming, outgoing]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        incoming.destroy();
        outgoing.destroy();
      });
    }
    void this.#pass(incoming, outgoing);
    void this.#pass(outgoing, incoming);
  }

  async #pass(from: Socket, to: Socket): Promise<void> {
    try {
      for await (const piece of from as AsyncIterable<Buffer>) {
        if (this.#trouble !== undefined) await this.#hold();
        if (!to.write(piece)) await once(to, "drain");
      }
      to.end();
    } catch {
      to.destroy();
    }
  }

  async #hold(): Promise<void> {
    while (this.#trouble?.kind === "stall") await this.#healed.promise;
    if (this.#trouble?.kind === "delay") await sleep(this.#trouble.delayMs);
  }

  #reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }
}
