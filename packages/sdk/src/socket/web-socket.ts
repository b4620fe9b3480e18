/** The part of WebSocket that the client uses. */
export interface WebSocketLike {
  binaryType: string;
  addEventListener(type: string, listener: (event: WebSocketEvent) => void): void;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
}

export interface WebSocketEvent {
  /** Set on a message. */
  readonly data?: unknown;
  /** Set on a close. */
  readonly code?: number | undefined;
}

export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;

export interface WebSocketRequest {
  readonly url: string;
  readonly protocols: string[];
  /** Sent by Node; browsers send their own. */
  readonly cookie: string | undefined;
}

interface WebSocketOptions {
  readonly protocols: string[];
  readonly headers: Readonly<Record<string, string>>;
}

type NodeWebSocketConstructor = new (url: string, options: WebSocketOptions) => WebSocketLike;

/** Node's own WebSocket also takes headers; any other gets the standard call. */
export function openWebSocket(
  given: WebSocketConstructor | undefined,
  { url, protocols, cookie }: WebSocketRequest,
): WebSocketLike {
  if (given !== undefined) return new given(url, protocols);
  const headers: Record<string, string> = cookie === undefined ? {} : { cookie };
  if (globalThis.WebSocket === undefined) return new WsWebSocket(url, { protocols, headers });
  if (cookie === undefined || !isNode()) return new globalThis.WebSocket(url, protocols);
  const NodeWebSocket = globalThis.WebSocket as unknown as NodeWebSocketConstructor;
  return new NodeWebSocket(url, { protocols, headers });
}

function isNode(): boolean {
  const holder = globalThis as { process?: { versions?: { node?: string } } };
  return holder.process?.versions?.node !== undefined;
}

/** The WebSocket of the package `ws`, for Node.js 20, which has none. Calls wait until the package is loaded. */
class WsWebSocket implements WebSocketLike {
  binaryType = "arraybuffer";
  readonly #socket: Promise<WebSocketLike>;

  constructor(url: string, { protocols, headers }: WebSocketOptions) {
    this.#socket = loadPackage().then(({ WebSocket }) => {
      const socket = new WebSocket(url, protocols, { headers, perMessageDeflate: false });
      socket.binaryType = this.binaryType;
      return socket;
    });
  }

  addEventListener(type: string, listener: (event: WebSocketEvent) => void): void {
    void this.#socket.then((socket) => socket.addEventListener(type, listener));
  }

  send(data: string | Uint8Array<ArrayBuffer>): void {
    void this.#socket.then((socket) => socket.send(data));
  }

  close(): void {
    void this.#socket.then((socket) => socket.close());
  }
}

interface WsPackage {
  readonly WebSocket: new (url: string, protocols: string[], options: object) => WebSocketLike;
}

/** Its types would bring those of Node.js with them, which a program for browsers does not have. */
function loadPackage(): Promise<WsPackage> {
  return import("ws" as string);
}
