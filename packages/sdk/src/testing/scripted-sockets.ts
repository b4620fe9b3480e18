import {
  type ClientMessage,
  clientMessageSchema,
  type DataFrame,
  decodeDataFrame,
  encodeDataFrame,
  type ServerMessage,
} from "@sandpiper/protocol";
import type { WebSocketConstructor, WebSocketEvent, WebSocketLike } from "../socket/web-socket.ts";

type Listener = (event: WebSocketEvent) => void;

/** One connection of a client; the test is its other end. */
export class ScriptedSocket implements WebSocketLike {
  binaryType = "";
  readonly url: string;
  readonly protocols: readonly string[];
  readonly messages: ClientMessage[] = [];
  readonly input: DataFrame[] = [];
  isClosed = false;
  readonly #listeners = new Map<string, Listener>();

  constructor(url: string, protocols: readonly string[]) {
    this.url = url;
    this.protocols = protocols;
  }

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, listener);
  }

  send(data: string | Uint8Array): void {
    if (typeof data === "string") this.messages.push(clientMessageSchema.parse(JSON.parse(data)));
    else this.input.push(decodeDataFrame(data) as DataFrame);
  }

  close(): void {
    this.isClosed = true;
  }

  /** The last message that opened a stream. */
  get open(): Extract<ClientMessage, { type: "open" }> {
    return this.messages.findLast((message) => message.type === "open") as Extract<ClientMessage, { type: "open" }>;
  }

  accept(): void {
    this.#listeners.get("open")?.({});
  }

  reply(message: ServerMessage): void {
    this.#listeners.get("message")?.({ data: JSON.stringify(message) });
  }

  data(frame: DataFrame): void {
    this.#listeners.get("message")?.({ data: encodeDataFrame(frame).buffer });
  }

  /** Closes it like a lost network. */
  cut(): void {
    this.#listeners.get("error")?.({});
    this.#listeners.get("close")?.({ code: 1006 });
  }

  /** Closes it like a node whose sandbox has moved. */
  restart(): void {
    this.#listeners.get("close")?.({ code: 1012 });
  }
}

/** The connections of a client, in order. */
export class ScriptedSockets {
  readonly all: ScriptedSocket[] = [];
  readonly webSocket: WebSocketConstructor;

  constructor() {
    const { all } = this;
    this.webSocket = class extends ScriptedSocket {
      constructor(url: string, protocols: readonly string[]) {
        super(url, protocols);
        all.push(this);
      }
    };
  }

  get last(): ScriptedSocket {
    return this.all.at(-1) as ScriptedSocket;
  }
}
