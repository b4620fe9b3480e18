import type { Socket } from "node:net";
import type { Channel, ChannelReceiver } from "@sandpiper/core";
import type { WriteMark } from "./write-mark.ts";
import { writePieces } from "./write-pieces.ts";

/** PIPE_BUF: so much is written whole or not at all. */
const ATOMIC_BYTES = 4096;

export interface ChannelEnds {
  /** Starts reading; called once. Throws when there is nothing to read from. */
  readonly startReader: (receive: (chunk: Uint8Array) => void) => Socket;
  readonly writer: Socket;
  /** Set while a frame may be on its way in pieces. */
  readonly mark?: WriteMark | undefined;
}

/** A channel over two one-way byte streams of the host. */
export class SocketChannel implements Channel {
  readonly #ends: ChannelEnds;
  readonly #onLost: () => void;
  #reader: Socket | undefined;
  #receiver: ChannelReceiver | undefined;
  #isClosed = false;

  /** `onLost` is called when the channel ends and nobody here closed it. */
  constructor(ends: ChannelEnds, onLost: () => void) {
    this.#ends = ends;
    this.#onLost = onLost;
    ends.writer.on("error", (error) => this.#end(error));
    ends.writer.on("close", () => this.#end(new Error("the other side does not read any more")));
  }

  open(receiver: ChannelReceiver): void {
    if (this.#isClosed) {
      receiver.closed(new Error("the channel was closed before it was opened"));
      return;
    }
    this.#receiver = receiver;
    try {
      this.#reader = this.#ends.startReader((chunk) => {
        if (!this.#isClosed) receiver.data(chunk);
      });
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#reader.on("error", (error) => this.#end(error));
    this.#reader.on("end", () => this.#end(new Error("the other side has gone")));
    this.#reader.on("close", () => this.#end(new Error("the other side has gone")));
  }

  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    const { writer, mark } = this.#ends;
    if (mark === undefined) return writePieces(writer, pieces);
    const size = pieces.reduce((sum, piece) => sum + piece.length, writer.writableLength);
    if (size > ATOMIC_BYTES) mark.set();
    const drained = writePieces(writer, pieces);
    mark.clearLater(() => writer.writableLength === 0);
    return drained;
  }

  close(): void {
    this.#end(undefined);
  }

  #end(cause: Error | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#ends.mark?.close();
    this.#ends.writer.destroy();
    this.#reader?.destroy();
    if (cause !== undefined) this.#onLost();
    this.#receiver?.closed(cause);
  }
}
