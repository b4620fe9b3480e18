import type { ClientMessage, DataFrame, SandboxError, ServerMessage } from "@sandpiper/protocol";

export type Opened = Extract<ServerMessage, { type: "opened" }>;
export type End = Extract<ServerMessage, { type: "end" }>;
export type Item = Extract<ServerMessage, { type: "item" }>["item"];
export type OpenMessage = Extract<ClientMessage, { type: "open" }>;

/** One stream, implemented by its owner. It outlives connections: each new connection opens it again. */
export interface SocketStream {
  /** Fails when the connection is lost on which it was open, instead of being opened again. */
  readonly endsWithConnection?: boolean;
  /** The message that opens it at its current position. */
  openMessage(stream: number): OpenMessage;
  opened(message: Opened): void;
  data?(frame: DataFrame): void;
  item?(item: Item): void;
  ack?(offset: number): void;
  /** The other end sends nothing more. */
  finished?(): void;
  end(message: End): void;
  /** `rollbacks` of its sandbox, if the node sent them with the error. */
  fail(error: SandboxError, rollbacks?: number): void;
}

type Distribute<Message> = Message extends { stream: number } ? Omit<Message, "stream"> : never;
/** The messages of an open stream; the connection adds the stream's number. */
export type StreamMessage = Distribute<Exclude<ClientMessage, { type: "open" | "close" }>>;

/** One stream, for its owner to use. Without a connection it sends nothing; the next connection opens the stream again. */
export interface StreamPort {
  /** Whether its open message was sent at least once. */
  readonly wasSent: boolean;
  send(message: StreamMessage): void;
  /** Standard input. */
  sendInput(offset: number, bytes: Uint8Array): void;
  /** Closes the stream. */
  close(): void;
}
