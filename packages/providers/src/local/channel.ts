import type { Readable, Writable } from "node:stream";
import type { Channel, ChannelReceiver } from "@sandpiper/core";
import { writePieces } from "../host/write-pieces.ts";

/**
 * The agent's stdin and stdout, used by one channel after another. Closing a channel leaves them open, because the
 * agent ends with its stdin.
 */
export class LocalChannel implements Channel {
  readonly #stdin: Writable;
  readonly #stdout: Readable;
  #receiver: ChannelReceiver | undefined;
  #isClosed = false;

  constructor({ stdin, stdout }: { readonly stdin: Writable; readonly stdout: Readable }) {
    this.#stdin = stdin;
    this.#stdout = stdout;
  }

  open(receiver: ChannelReceiver): void {
    if (this.#isClosed) {
      receiver.closed(new Error("the channel was closed before it was opened"));
      return;
    }
    this.#receiver = receiver;
    this.#stdout.on("data", this.#receive);
  }

  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    return this.#isClosed ? undefined : writePieces(this.#stdin, pieces);
  }

  close(): void {
    this.end(undefined);
  }

  /** With a cause unless this side closed it. */
  end(cause: Error | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stdout.off("data", this.#receive);
    this.#receiver?.closed(cause);
  }

  readonly #receive = (chunk: Uint8Array): void => this.#receiver?.data(chunk);
}
