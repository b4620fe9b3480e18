import { errorFromBody, type SandboxError } from "@sandpiper/protocol";

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
  readonly handshake?: HandshakeListener | undefined;
}

/** Learns what a node or load balancer answers to the handshake. Only the package `ws` shows it. */
interface HandshakeListener {
  accepted(answer: Pick<Headers, "getSetCookie">): void;
  refused(error: SandboxError): void;
}

interface WebSocketOptions {
  readonly protocols: string[];
  readonly headers: Readonly<Record<string, string>>;
}

type NodeWebSocketConstructor = new (url: string, options: WebSocketOptions) => WebSocketLike;

/** Node's own WebSocket also takes headers; any other gets the standard call. */
export function openWebSocket(
  given: WebSocketConstructor | undefined,
  { url, protocols, cookie, handshake }: WebSocketRequest,
): WebSocketLike {
  if (given !== undefined) return new given(url, protocols);
  const headers: Record<string, string> = cookie === undefined ? {} : { cookie };
  if (globalThis.WebSocket === undefined || (handshake !== undefined && isNode())) {
    return new WsWebSocket(url, { protocols, headers }, handshake);
  }
  if (cookie === undefined || !isNode()) return new globalThis.WebSocket(url, protocols);
  const NodeWebSocket = globalThis.WebSocket as unknown as NodeWebSocketConstructor;
  return new NodeWebSocket(url, { protocols, headers });
}

function isNode(): boolean {
  const holder = globalThis as { process?: { versions?: { node?: string } } };
  return holder.process?.versions?.node !== undefined;
}

/**
 * The WebSocket of the package `ws`: for Node.js 20, which has none, and to see the answer to the handshake. Calls wait
 * until the package is loaded.
 */
class WsWebSocket implements WebSocketLike {
  binaryType = "arraybuffer";
  readonly #socket: Promise<WebSocketLike>;

  constructor(url: string, { protocols, headers }: WebSocketOptions, handshake?: HandshakeListener) {
    this.#socket = loadPackage().then(({ WebSocket }) => {
      const socket = new WebSocket(url, protocols, { headers, perMessageDeflate: false });
      socket.binaryType = this.binaryType;
      if (handshake !== undefined) watchHandshake(socket, handshake);
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

interface WsSocket extends WebSocketLike {
  on(event: "upgrade", listener: (answer: WsAnswer) => void): void;
  on(event: "unexpected-response", listener: (request: unknown, answer: WsAnswer) => void): void;
  terminate(): void;
}

interface WsAnswer extends AsyncIterable<Uint8Array> {
  readonly statusCode?: number;
  readonly headers: { readonly "set-cookie"?: string[] };
}

interface WsPackage {
  readonly WebSocket: new (url: string, protocols: string[], options: object) => WsSocket;
}

function watchHandshake(socket: WsSocket, handshake: HandshakeListener): void {
  const accept = ({ headers }: WsAnswer) => handshake.accepted({ getSetCookie: () => headers["set-cookie"] ?? [] });
  socket.on("upgrade", accept);
  socket.on("unexpected-response", async (_request, answer) => {
    accept(answer);
    handshake.refused(errorFromBody(await jsonOf(answer), { status: answer.statusCode ?? 0 }));
    // With this listener, the package leaves the connection to us.
    socket.terminate();
  });
}

/** Undefined for an answer that is cut off or not JSON. */
async function jsonOf(answer: WsAnswer): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of answer) text += decoder.decode(bytes, { stream: true });
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Its types would bring those of Node.js with them, which a program for browsers does not have. */
function loadPackage(): Promise<WsPackage> {
  return import("ws" as string);
}
