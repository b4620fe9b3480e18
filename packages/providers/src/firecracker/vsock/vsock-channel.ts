import type { Socket } from "node:net";
import type { Channel, ChannelReceiver } from "@sandpiper/core";
import { writePieces } from "../../host/write-pieces.ts";

/**
 * A channel whose connection can be replaced. A machine that is saved loses all connections of its vsock device when it goes
 * on, and its agent, which is quiesced then, goes on with the next one as if it were the same.
 */
export class VsockChannel implements Channel {
  #socket: Socket;
  #receiver: ChannelReceiver | undefined;
  #isClosed = false;
  #isReplacing = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    // Kept until somebody reads.
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

  /** From now on the end of its connection is none of the channel: another one comes. */
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

  /** No other connection could be made. */
  giveUp(cause: Error): void {
    this.#isReplacing = false;
    this.#end(cause);
  }

  #follow(socket: Socket): void {
    const lost = (cause: Error) => {
      if (socket === this.#socket && !this.#isReplacing) this.#end(cause);
    };
    socket.on("error", lost);
    socket.on("end", () => lost(new Error("the other side has gone")));
    socket.on("close", () => lost(new Error("the other side has gone")));
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
