import type { OpenMessage, SocketStream, StreamPort } from "./socket-stream.ts";

/** A stream that exists to be answered: events that nobody waits for, given up as soon as the node has said anything. */
export class SignOfLife implements SocketStream {
  #port: StreamPort | undefined;

  attach(port: StreamPort): void {
    this.#port = port;
  }

  openMessage(stream: number): OpenMessage {
    return { type: "open", stream, kind: "events", after: Number.MAX_SAFE_INTEGER, window: 1 };
  }

  opened(): void {
    this.#port?.close();
  }

  end(): void {}

  fail(): void {}
}
