import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

/** A close frame with the code 1012. */
const SERVICE_RESTART = Uint8Array.of(0x88, 0x02, 0x03, 0xf4);

/** A load balancer with cookie affinity, in front of one node that stands for several; a test moves the sandboxes. */
export class Balancer implements AsyncDisposable {
  readonly url: string;
  /** The Cookie header of every upgrade, in order. */
  readonly upgradeCookies: (string | undefined)[] = [];
  readonly #server: Server;
  readonly #target: URL;
  readonly #moving = new Set<() => void>();
  #node = 1;

  private constructor(server: Server, target: URL) {
    this.#server = server;
    this.#target = target;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (incoming, answer) => this.#forward(incoming, answer));
    server.on("upgrade", (incoming, client: Socket) => this.#upgrade(incoming, client));
  }

  static async start(target: string): Promise<Balancer> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Balancer(server, new URL(target));
  }

  /** The cookie of the current node. */
  get cookie(): string {
    return `SERVERID=node-${this.#node}`;
  }

  /** Moves all sandboxes to the next node: closes connections with 1012 and returns their number. */
  move(): number {
    this.#node++;
    const { size } = this.#moving;
    for (const close of [...this.#moving]) close();
    return size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.move();
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  #forward(incoming: IncomingMessage, answer: ServerResponse): void {
    const { hostname, port } = this.#target;
    const { method, url: path, headers } = incoming;
    const outgoing = request({ hostname, port, method, path, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, { ...response.headers, "set-cookie": `${this.cookie}; path=/` });
      response.pipe(answer);
    });
    outgoing.on("error", () => answer.destroy());
    incoming.pipe(outgoing);
  }

  #upgrade({ url, headers, rawHeaders }: IncomingMessage, client: Socket): void {
    this.upgradeCookies.push(headers.cookie);
    const node = connect(Number(this.#target.port), this.#target.hostname);
    const pairs = rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`));
    node.write(`GET ${url} HTTP/1.1\r\n${pairs.join("")}\r\n`);
    const frames = new FrameSplitter();
    node.on("data", (bytes: Buffer) => client.write(frames.take(bytes)));
    client.on("data", (bytes) => node.write(bytes));
    const move = () => {
      this.#moving.delete(move);
      node.destroy();
      client.end(SERVICE_RESTART);
    };
    this.#moving.add(move);
    for (const socket of [client, node]) {
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#moving.delete(move);
        node.destroy();
        client.end();
      });
    }
  }
}

/** Forwards only complete frames, so that the balancer can insert its own frame at any time. */
class FrameSplitter {
  #rest: Buffer = Buffer.alloc(0);
  #hasHead = false;

  take(bytes: Buffer): Buffer {
    const all = Buffer.concat([this.#rest, bytes]);
    let end = 0;
    if (!this.#hasHead) {
      const head = all.indexOf("\r\n\r\n");
      this.#hasHead = head >= 0;
      end = head < 0 ? 0 : head + 4;
    }
    while (this.#hasHead) {
      const length = frameLength(all.subarray(end));
      if (length === undefined || end + length > all.length) break;
      end += length;
    }
    this.#rest = all.subarray(end);
    return all.subarray(0, end);
  }
}

/** The length of a server's frame, which is not masked; undefined until its header is complete. */
function frameLength(bytes: Buffer): number | undefined {
  if (bytes.length < 2) return undefined;
  const short = (bytes[1] as number) & 0x7f;
  if (short < 126) return 2 + short;
  const wide = short === 126 ? 2 : 8;
  if (bytes.length < 2 + wide) return undefined;
  return 2 + wide + (wide === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2)));
}
