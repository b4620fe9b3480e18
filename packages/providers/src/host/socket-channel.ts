import type { Socket } from "node:net";
import { HostChannel } from "./host-channel.ts";
import type { WriteMark } from "./write-mark.ts";

/** PIPE_BUF: up to this size a write is atomic. */
const ATOMIC_BYTES = 4096;

export interface ChannelEnds {
  /** Starts reading; called once. Throws when the stream cannot be read. */
  readonly startReader: (receive: (chunk: Uint8Array) => void) => Socket;
  readonly writer: Socket;
  /** Set while a frame may be written only in part. */
  readonly mark: WriteMark;
}

/** A channel over two one-way byte streams. */
export class SocketChannel extends HostChannel {
  protected readonly writer: Socket;
  protected reader: Socket | undefined;
  readonly #ends: ChannelEnds;
  readonly #onLost: () => void;

  /** Calls `onLost` when the channel ends without `close`. */
  constructor(ends: ChannelEnds, onLost: () => void = () => {}) {
    super();
    this.writer = ends.writer;
    this.#ends = ends;
    this.#onLost = onLost;
    ends.writer.on("error", (error) => this.end(error));
    ends.writer.on("close", () => this.end(new Error("the other side has stopped reading")));
  }

  override write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    if (this.isClosed) return undefined;
    const { writer, mark } = this.#ends;
    const size = pieces.reduce((sum, piece) => sum + piece.length, writer.writableLength);
    if (size > ATOMIC_BYTES) mark.set();
    const drained = super.write(pieces);
    mark.clearLater(() => writer.writableLength === 0);
    return drained;
  }

  protected startReader(): void {
    try {
      this.reader = this.#ends.startReader((chunk) => this.receive(chunk));
    } catch (error) {
      this.end(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.reader.on("error", (error) => this.end(error));
    this.reader.on("end", () => this.end(new Error("the other side has closed the channel")));
    this.reader.on("close", () => this.end(new Error("the other side has closed the channel")));
  }

  protected release(cause: Error | undefined): void {
    this.#ends.mark.close();
    this.writer.destroy();
    this.reader?.destroy();
    if (cause !== undefined) this.#onLost();
  }
}
