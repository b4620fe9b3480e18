/** What the client needs of a WebSocket; the global one of browsers and Node has it. */
export interface WebSocketLike {
  binaryType: string;
  addEventListener(type: string, listener: (event: { readonly data?: unknown }) => void): void;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
}

export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;
