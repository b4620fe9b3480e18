import type { ServerMessage } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { Credit } from "./credit.ts";
import type { MessageSocket } from "./message-socket.ts";
import { StdinQueue } from "./stdin-queue.ts";

/** How a stream ended by itself. */
export type StreamEnd = Omit<Extract<ServerMessage, { type: "end" }>, "type" | "stream">;

/** One of the streams of a connection. */
export class SocketStream {
  readonly number: number;
  readonly socket: MessageSocket;
  /** What the client lets it send. */
  readonly credit: Credit;
  /** What the client sends on it; only streams of standard input have any. */
  readonly stdin: StdinQueue | undefined;
  /** The sandbox that it is about, once that is found. */
  live: LiveSandbox | undefined;
  readonly #ending = new AbortController();

  constructor({ number, socket, window }: { number: number; socket: MessageSocket; window: number | undefined }) {
    this.number = number;
    this.socket = socket;
    this.credit = new Credit(window ?? 0, this.#ending.signal);
    this.stdin = window === undefined ? new StdinQueue(this.#ending.signal) : undefined;
  }

  /** Aborted when nobody reads it any more. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  end(): void {
    this.#ending.abort();
  }

  opened(fields: { readonly offset?: number; readonly pid?: number } = {}): void {
    this.#send({ type: "opened", stream: this.number, ...fields, ...this.past });
  }

  /** How often its sandbox was set back, when it ever was. */
  get past(): { readonly rollbacks?: number } {
    const rollbacks = this.live?.record.rollbacks ?? 0;
    return rollbacks === 0 ? {} : { rollbacks };
  }

  ack(offset: number): void {
    this.#send({ type: "ack", stream: this.number, offset });
  }

  /** Sends one item for one credit. */
  async item(item: Extract<ServerMessage, { type: "item" }>["item"]): Promise<void> {
    await this.credit.some();
    if (this.signal.aborted) return;
    this.credit.take(1);
    const message: ServerMessage = { type: "item", stream: this.number, item };
    await this.socket.deliver(() => (this.signal.aborted ? undefined : JSON.stringify(message)));
  }

  #send(message: ServerMessage): void {
    if (!this.signal.aborted) this.socket.send(message);
  }
}

/** What a stream of a sandbox works on. */
export interface StreamSubject {
  readonly stream: SocketStream;
  readonly live: LiveSandbox;
}
