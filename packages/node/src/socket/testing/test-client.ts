import { type DataFrame, decodeDataFrame, encodeDataFrame } from "@sandpiper/protocol";
import { WebSocket } from "ws";

export interface ConnectOptions {
  readonly credential?: string | undefined;
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Refusal {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

type Received = Record<string, unknown> | DataFrame;

/** A WebSocket that queues its messages. */
export class TestClient {
  readonly webSocket: WebSocket;
  /** How the server closed the connection. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** The answer if the server refuses the connection. */
  readonly refused: Promise<Refusal>;
  readonly #received: Received[] = [];
  readonly #waiting: ((message: Received) => void)[] = [];

  constructor(url: string, { credential, protocols = [], headers = {} }: ConnectOptions) {
    const authorization = credential === undefined ? {} : { authorization: `Bearer ${credential}` };
    this.webSocket = new WebSocket(url, [...protocols], { headers: { ...headers, ...authorization } });
    this.webSocket.on("error", () => {});
    this.webSocket.on("message", (data: Buffer, isBinary) => {
      const message = isBinary ? (decodeDataFrame(data) as DataFrame) : JSON.parse(data.toString());
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#received.push(message);
      else waiting(message);
    });
    this.closed = new Promise((resolve) => {
      this.webSocket.on("close", (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    this.refused = new Promise((resolve) => {
      this.webSocket.on("unexpected-response", async (_request, response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk);
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) });
      });
    });
  }

  opened(): Promise<void> {
    if (this.webSocket.readyState === WebSocket.OPEN) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.webSocket.once("open", resolve);
      this.webSocket.once("close", () => reject(new Error("the connection was not opened")));
    });
  }

  async send(message: object | string): Promise<void> {
    await this.opened();
    this.webSocket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  async sendStdin(stream: number, offset: number, text: string): Promise<void> {
    await this.opened();
    this.webSocket.send(encodeDataFrame({ stream, source: "stdin", offset, bytes: Buffer.from(text) }));
  }

  /** The next message: parsed JSON, or a data frame. */
  next(): Promise<Received> {
    const message = this.#received.shift();
    if (message !== undefined) return Promise.resolve(message);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  async take(count: number): Promise<Received[]> {
    const messages: Received[] = [];
    while (messages.length < count) messages.push(await this.next());
    return messages;
  }

  /** The messages up to the first that matches, including it. */
  async until(matches: (message: Received) => boolean): Promise<Received[]> {
    const messages: Received[] = [];
    for (;;) {
      const message = await this.next();
      messages.push(message);
      if (matches(message)) return messages;
    }
  }

  close(): Promise<unknown> {
    this.webSocket.close();
    return this.closed;
  }

  terminate(): void {
    this.webSocket.terminate();
  }
}

export function isFrame(message: Received): message is DataFrame {
  return "bytes" in message;
}
