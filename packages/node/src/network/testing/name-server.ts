import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

/** Answers DNS queries for the addresses of a few names; other names do not exist. */
export class NameServer implements AsyncDisposable {
  readonly #socket: Socket;
  readonly #names: Readonly<Record<string, string>>;
  /** The names that were asked for, in order. */
  readonly asked: string[] = [];

  private constructor(socket: Socket, names: Readonly<Record<string, string>>) {
    this.#socket = socket;
    this.#names = names;
    socket.on("message", (message, { port, address }) => socket.send(this.#answer(message), port, address));
  }

  static async start(names: Readonly<Record<string, string>>): Promise<NameServer> {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return new NameServer(socket, names);
  }

  /** As a setting of a node. */
  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  #answer(query: Buffer): Buffer {
    const { name, end } = readName(query, 12);
    const type = query.readUInt16BE(end);
    const question = query.subarray(12, end + 4);
    this.asked.push(name);
    const address = this.#names[name];
    const isAnswered = address !== undefined && type === 1;
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(address === undefined ? 0x8183 : 0x8180, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(isAnswered ? 1 : 0, 6);
    if (!isAnswered) return Buffer.concat([header, question]);
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)]);
    return Buffer.concat([header, question, record]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => this.#socket.close(resolve));
  }
}

function readName(message: Buffer, from: number): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = from;
  for (;;) {
    const length = message[at] ?? 0;
    at += 1;
    if (length === 0) return { name: labels.join(".").toLowerCase(), end: at };
    labels.push(message.toString("latin1", at, at + length));
    at += length;
  }
}
