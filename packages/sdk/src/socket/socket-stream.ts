import type { ClientMessage, DataFrame, SandboxError, ServerMessage } from "@sandpiper/protocol";

export type Opened = Extract<ServerMessage, { type: "opened" }>;
export type End = Extract<ServerMessage, { type: "end" }>;
export type Item = Extract<ServerMessage, { type: "item" }>["item"];
export type OpenMessage = Extract<ClientMessage, { type: "open" }>;

/** One stream of the connection, as its owner sees it. It outlives connections: each new one opens it again. */
export interface SocketStream {
  /** The message that opens it, now or again after a lost connection, from where it stands. */
  openMessage(stream: number): OpenMessage;
  opened(message: Opened): void;
  data?(frame: DataFrame): void;
  item?(item: Item): void;
  ack?(offset: number): void;
  end(message: End): void;
  /** `rollbacks` of its sandbox, where the node said that with the error. */
  fail(error: SandboxError, rollbacks?: number): void;
}

type Distribute<Message> = Message extends { stream: number } ? Omit<Message, "stream"> : never;
/** What an open stream may say; the connection adds the stream's number. */
export type StreamMessage = Distribute<Exclude<ClientMessage, { type: "open" | "close" }>>;

/** One stream of the connection, as its owner uses it. While there is no connection nothing is sent: the next one opens the stream anew. */
export interface StreamPort {
  /** The message that opens it has left at least once. */
  readonly wasSent: boolean;
  send(message: StreamMessage): void;
  /** Standard input. */
  sendInput(offset: number, bytes: Uint8Array): void;
  /** Gives the stream up. */
  close(): void;
}
