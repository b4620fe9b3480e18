import type { Socket } from "node:net";
import type { Channel, ChannelReceiver } from "@sandpiper/core";
import { writePieces } from "../../host/write-pieces.ts";

/**
 * A channel whose connection can be replaced. A checkpoint ends all vsock connections of a machine; the quiesced agent
 * continues on the next one.
 */
export class VsockChannel implements Channel {
  #socket: Socket;
  #receiver: ChannelReceiver | undefined;
  #isClosed = false;
  #isReplacing = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    // Buffers until a reader is set.
    socket.pause();
    this.#follow(socket);
  }

  open(receiver: ChannelReceiver): void {
    if (this.#isClosed) {
      receiver.closed(new Error("the channel was closed before it was opened"));
      return;
    }
    this.#receiver = receiver;
    this.#read(this.#socket);
  }

  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    return this.#isClosed ? undefined : writePieces(this.#socket, pieces);
  }

  close(): void {
    this.#end(undefined);
  }

  /** The end of the current connection no longer ends the channel, because another one follows. */
  beginReplacing(): void {
    this.#isReplacing = true;
  }

  replace(socket: Socket): void {
    this.#isReplacing = false;
    const former = this.#socket;
    this.#socket = socket;
    former.destroy();
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    this.#follow(socket);
    if (this.#receiver !== undefined) this.#read(socket);
  }

  /** Ends the channel when no other connection could be made. */
  giveUp(cause: Error): void {
    this.#isReplacing = false;
    this.#end(cause);
  }

  #follow(socket: Socket): void {
    const lost = (cause: Error) => {
      if (socket === this.#socket && !this.#isReplacing) this.#end(cause);
    };
    socket.on("error", lost);
    socket.on("end", () => lost(new Error("the connection has ended")));
    socket.on("close", () => lost(new Error("the connection has ended")));
  }

  #read(socket: Socket): void {
    socket.on("data", (chunk: Uint8Array) => {
      if (socket === this.#socket && !this.#isClosed) this.#receiver?.data(chunk);
    });
    socket.resume();
  }

  #end(cause: Error | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    this.#receiver?.closed(cause);
  }
}
