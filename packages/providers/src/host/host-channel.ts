import type { Readable, Writable } from "node:stream";
import type { Channel, ChannelReceiver } from "@sandpiper/core";
import { writePieces } from "./write-pieces.ts";

/** A channel over byte streams of the host. It ends once, and then reports that to its receiver. */
export abstract class HostChannel implements Channel {
  protected abstract readonly writer: Writable;
  /** Set once `startReader` has returned. */
  protected abstract readonly reader: Readable | undefined;
  protected receiver: ChannelReceiver | undefined;
  protected isClosed = false;

  open(receiver: ChannelReceiver): void {
    if (this.isClosed) {
      receiver.closed(new Error("the channel was closed before it was opened"));
      return;
    }
    this.receiver = receiver;
    this.startReader();
  }

  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    return this.isClosed ? undefined : writePieces(this.writer, pieces);
  }

  close(): void {
    this.end(undefined);
  }

  /** Passes every chunk from now on to `receive`. */
  protected abstract startReader(): void;

  /** Releases the streams; without a cause this side closed the channel. */
  protected abstract release(cause: Error | undefined): void;

  /** Pauses the reader while the receiver is busy: then the pipe fills, and the guest waits. */
  protected receive(chunk: Uint8Array): void {
    if (this.isClosed) return;
    const ready = this.receiver?.data(chunk);
    if (ready === undefined || this.isClosed) return;
    this.reader?.pause();
    ready.then(() => {
      if (!this.isClosed) this.reader?.resume();
    });
  }

  protected end(cause: Error | undefined): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.release(cause);
    this.receiver?.closed(cause);
  }
}
