import type { Socket } from "node:net";
import type { Channel, ChannelReceiver } from "@sandpiper/core";
import type { WriteMark } from "./write-mark.ts";
import { writePieces } from "./write-pieces.ts";

/** PIPE_BUF: up to this size a write is atomic. */
const ATOMIC_BYTES = 4096;

export interface ChannelEnds {
  /** Starts reading; called once. Throws when the stream cannot be read. */
  readonly startReader: (receive: (chunk: Uint8Array) => void) => Socket;
  readonly writer: Socket;
  /** Set while a frame may be written only in part. */
  readonly mark?: WriteMark | undefined;
}

/** A channel over two one-way byte streams of the host. */
export class SocketChannel implements Channel {
  readonly #ends: ChannelEnds;
  readonly #onLost: () => void;
  #reader: Socket | undefined;
  #receiver: ChannelReceiver | undefined;
  #isClosed = false;

  /** Calls `onLost` when the channel ends without `close`. */
  constructor(ends: ChannelEnds, onLost: () => void) {
    this.#ends = ends;
    this.#onLost = onLost;
    ends.writer.on("error", (error) => this.#end(error));
    ends.writer.on("close", () => this.#end(new Error("the other side has stopped reading")));
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
    this.#reader.on("end", () => this.#end(new Error("the other side has closed the channel")));
    this.#reader.on("close", () => this.#end(new Error("the other side has closed the channel")));
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
