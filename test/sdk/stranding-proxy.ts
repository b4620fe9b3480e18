import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A network that a client loses while the node does not notice. */
export class StrandingProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #pairs = new Set<{ readonly client: Socket; readonly node: Socket }>();
  readonly #stranded = new Set<Socket>();

  private constructor(server: Server, target: URL) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (client) => this.#pass(client, connect(Number(target.port), target.hostname)));
  }

  static async start(target: string): Promise<StrandingProxy> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new StrandingProxy(server, new URL(target));
  }

  /** The clients lose their connections, and the node keeps its own. Returns their number. */
  strand(): number {
    const pairs = [...this.#pairs];
    this.#pairs.clear();
    for (const { client, node } of pairs) {
      node.unpipe();
      node.pause();
      this.#stranded.add(node);
      client.resetAndDestroy();
    }
    return pairs.length;
  }

  /** The node notices that the stranded connections are dead. */
  reveal(): void {
    for (const node of this.#stranded) node.destroy();
    this.#stranded.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.strand();
    this.reveal();
    this.#server.close();
    await once(this.#server, "close");
  }

  #pass(client: Socket, node: Socket): void {
    const pair = { client, node };
    this.#pairs.add(pair);
    client.pipe(node);
    node.pipe(client);
    for (const socket of [client, node]) {
      socket.on("error", () => {});
      socket.on("close", () => {
        if (!this.#pairs.delete(pair)) return;
        client.destroy();
        node.destroy();
      });
    }
  }
}
