import type { Readable, Writable } from "node:stream";
import { HostChannel } from "./host-channel.ts";

/** Streams that one channel after another uses. Closing a channel leaves them open. */
export class LentChannel extends HostChannel {
  protected readonly writer: Writable;
  protected readonly reader: Readable;

  constructor(reader: Readable, writer: Writable) {
    super();
    this.reader = reader;
    this.writer = writer;
  }

  /** The owner of the streams reports that they have ended. */
  lose(cause: Error): void {
    this.end(cause);
  }

  protected startReader(): void {
    this.reader.on("data", this.#receive);
    // An earlier channel may have paused it.
    this.reader.resume();
  }

  protected release(): void {
    this.reader.off("data", this.#receive);
  }

  readonly #receive = (chunk: Uint8Array): void => this.receive(chunk);
}
