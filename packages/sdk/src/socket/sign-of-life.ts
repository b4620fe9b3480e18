import type { OpenMessage, SocketStream, StreamPort } from "./socket-stream.ts";

/** A stream of events that is opened only to get an answer, and closed with the first one. */
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
