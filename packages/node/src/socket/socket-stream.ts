import type { ServerMessage } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { Credit } from "./credit.ts";
import type { MessageSocket } from "./message-socket.ts";
import { StdinQueue } from "./stdin-queue.ts";

/** The result of a stream that the client did not close. */
export type StreamEnd = Omit<Extract<ServerMessage, { type: "end" }>, "type" | "stream">;

interface SocketStreamOptions {
  readonly number: number;
  readonly socket: MessageSocket;
  /** How much it may send at first. */
  readonly window: number | undefined;
  readonly takesInput: boolean;
}

/** One stream of a connection. */
export class SocketStream {
  readonly number: number;
  readonly socket: MessageSocket;
  readonly credit: Credit;
  /** The client's input; undefined for a stream that takes none. */
  readonly stdin: StdinQueue | undefined;
  /** Its sandbox, once that is found. */
  live: LiveSandbox | undefined;
  readonly #ending = new AbortController();

  constructor({ number, socket, window, takesInput }: SocketStreamOptions) {
    this.number = number;
    this.socket = socket;
    this.credit = new Credit(window ?? 0, this.#ending.signal);
    this.stdin = takesInput ? new StdinQueue(this.#ending.signal) : undefined;
  }

  /** Aborts when the stream ends. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  end(): void {
    this.#ending.abort();
  }

  opened(fields: { readonly offset?: number; readonly pid?: number } = {}): void {
    this.#send({ type: "opened", stream: this.number, ...fields, ...this.past });
  }

  /** How often its sandbox was rolled back, if ever. */
  get past(): { readonly rollbacks?: number } {
    const rollbacks = this.live?.record.rollbacks ?? 0;
    return rollbacks === 0 ? {} : { rollbacks };
  }

  ack(offset: number): void {
    this.#send({ type: "ack", stream: this.number, offset });
  }

  finished(offset: number): void {
    this.#send({ type: "finished", stream: this.number, offset });
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

export interface StreamSubject {
  readonly stream: SocketStream;
  readonly live: LiveSandbox;
}
