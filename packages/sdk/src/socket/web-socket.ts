import { SandboxError } from "@sandpiper/protocol";

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

type NodeWebSocketConstructor = new (
  url: string,
  options: { readonly protocols: string[]; readonly headers: Readonly<Record<string, string>> },
) => WebSocketLike;

/** Node's own WebSocket also takes headers; any other gets the standard call. */
export function openWebSocket(
  given: WebSocketConstructor | undefined,
  { url, protocols, cookie }: WebSocketRequest,
): WebSocketLike {
  if (given !== undefined) return new given(url, protocols);
  if (globalThis.WebSocket === undefined)
    throw new SandboxError("no_web_socket", { message: `cannot connect to ${url}` });
  if (cookie === undefined || !isNode()) return new globalThis.WebSocket(url, protocols);
  const NodeWebSocket = globalThis.WebSocket as unknown as NodeWebSocketConstructor;
  return new NodeWebSocket(url, { protocols, headers: { cookie } });
}

function isNode(): boolean {
  const holder = globalThis as { process?: { versions?: { node?: string } } };
  return holder.process?.versions?.node !== undefined;
}
