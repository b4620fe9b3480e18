import { type SandboxError, type SessionEvent, SOCKET_PROTOCOL } from "@sandpiper/protocol";
import type { ClientSpec } from "../client-options.ts";
import type { CookieJar } from "../http/cookie-jar.ts";
import { Heartbeat } from "../socket/heartbeat.ts";
import { openWebSocket, type WebSocketLike } from "../socket/web-socket.ts";
import { parseSessionEvent } from "./session-event.ts";

const CONNECT_TIMEOUT_MS = 10_000;
/** How long the other side may take to answer a close. */
const CLOSE_TIMEOUT_MS = 2_000;

/** How a connection ended. */
export interface SocketEnd {
  readonly wasOpen: boolean;
  /** Undefined if the connection was given up. */
  readonly code: number | undefined;
  /** The answer to a refused handshake, where it is visible. */
  readonly refusal: SandboxError | undefined;
}

export interface SessionSocketOptions {
  readonly spec: ClientSpec;
  readonly cookies: CookieJar;
  readonly credential: string | undefined;
  /** With the query. */
  readonly path: string;
  readonly onEvent: (event: SessionEvent) => void;
  /** Called once, and no event follows. */
  readonly onEnd: (end: SocketEnd) => void;
}

/** One connection of a session. */
export class SessionSocket {
  readonly #options: SessionSocketOptions;
  readonly #socket: WebSocketLike;
  #cancelTimer: () => void;
  #heartbeat: Heartbeat | undefined;
  #wasOpen = false;
  #isEnded = false;
  #refusal: SandboxError | undefined;

  constructor(options: SessionSocketOptions) {
    const { spec, cookies, credential, path } = options;
    this.#options = options;
    this.#socket = openWebSocket(spec.webSocket, {
      url: `${spec.baseUrl.replace(/^http/, "ws")}${path}`,
      protocols: [SOCKET_PROTOCOL, ...(credential === undefined ? [] : [`bearer.${credential}`])],
      cookie: cookies.header,
      handshake: {
        accepted: (answer) => cookies.take(answer),
        refused: (error) => {
          this.#refusal = error;
        },
      },
    });
    this.#cancelTimer = spec.timing.schedule(CONNECT_TIMEOUT_MS, () => this.#giveUp());
    this.#socket.addEventListener("open", () => this.#opened());
    this.#socket.addEventListener("message", ({ data }) => this.#receive(data));
    // A close follows.
    this.#socket.addEventListener("error", () => {});
    this.#socket.addEventListener("close", ({ code }) => this.#end(code));
  }

  send(message: object): void {
    if (!this.#isEnded) this.#socket.send(JSON.stringify(message));
  }

  /** `onEnd` is called when the other side has closed the connection as well, or does not answer. */
  close(): void {
    if (this.#isEnded) return;
    this.#stopWaiting();
    this.#cancelTimer = this.#options.spec.timing.schedule(CLOSE_TIMEOUT_MS, () => this.#end(undefined));
    this.#socket.close();
  }

  #opened(): void {
    if (this.#isEnded) return;
    this.#stopWaiting();
    this.#wasOpen = true;
    this.#heartbeat = new Heartbeat({
      timing: this.#options.spec.timing,
      ask: () => this.send({ ping: true }),
      onDead: () => this.#giveUp(),
    });
  }

  #receive(data: unknown): void {
    if (this.#isEnded) return;
    this.#heartbeat?.heard();
    const event = parseSessionEvent(data);
    if (event !== undefined) this.#options.onEvent(event);
  }

  /** Its close event may come much later, or never. */
  #giveUp(): void {
    this.#end(undefined);
    this.#socket.close();
  }

  #end(code: number | undefined): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#stopWaiting();
    this.#options.onEnd({ wasOpen: this.#wasOpen, code, refusal: this.#refusal });
  }

  #stopWaiting(): void {
    this.#cancelTimer();
    this.#heartbeat?.stop();
    this.#heartbeat = undefined;
  }
}
