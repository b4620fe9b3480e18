import type { SessionEvent, SessionStatus } from "@sandpiper/protocol";
import type { WebSocketConstructor, WebSocketEvent, WebSocketLike } from "../socket/web-socket.ts";

type Listener = (event: WebSocketEvent) => void;

/** One connection of a session; the test is its other end. */
export class ScriptedSession implements WebSocketLike {
  binaryType = "";
  readonly path: string;
  readonly query: Record<string, string>;
  readonly credential: string | undefined;
  readonly messages: Record<string, unknown>[] = [];
  isClosed = false;
  readonly #listeners = new Map<string, Listener>();

  constructor(url: string, protocols: readonly string[]) {
    const { pathname, searchParams } = new URL(url);
    this.path = pathname;
    this.query = Object.fromEntries(searchParams);
    this.credential = protocols.find((name) => name.startsWith("bearer."))?.slice("bearer.".length);
  }

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, listener);
  }

  send(data: string | Uint8Array): void {
    this.messages.push(JSON.parse(data as string));
  }

  /** The other end answers a close at once. */
  close(): void {
    this.isClosed = true;
    this.end(1005);
  }

  accept(): this {
    this.#emit("open", {});
    return this;
  }

  reply(event: SessionEvent): this {
    this.#emit("message", { data: JSON.stringify(event) });
    return this;
  }

  status(name: string, fields: object = {}): this {
    return this.reply({ event: "status_update", status: `SANDBOX_${name}` as SessionStatus, ...fields });
  }

  /** Output of an execution; its `next` counts the characters. */
  output(execution: string, data: string, offset: number): this {
    return this.reply({ event: "stdout", data, execution, offset, next: `${offset + data.length}` });
  }

  /** Closes it like a node, or like a lost network without a code. */
  end(code = 1006): void {
    this.#emit("close", { code });
  }

  #emit(type: string, event: WebSocketEvent): void {
    this.#listeners.get(type)?.(event);
  }
}

/** The connections of a session, in order. */
export class ScriptedSessions {
  readonly all: ScriptedSession[] = [];
  readonly webSocket: WebSocketConstructor;

  constructor() {
    const { all } = this;
    this.webSocket = class extends ScriptedSession {
      constructor(url: string, protocols: readonly string[]) {
        super(url, protocols);
        all.push(this);
      }
    };
  }

  get last(): ScriptedSession {
    return this.all.at(-1) as ScriptedSession;
  }
}
