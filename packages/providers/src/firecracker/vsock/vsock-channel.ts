import type { Socket } from "node:net";
import { HostChannel } from "../../host/host-channel.ts";

/**
 * A channel whose connection can be replaced. A checkpoint ends all vsock connections of a machine; the quiesced agent
 * continues on the next one.
 */
export class VsockChannel extends HostChannel {
  protected writer: Socket;
  #isReplacing = false;

  constructor(socket: Socket) {
    super();
    this.writer = socket;
    // Buffers until a reader is set.
    socket.pause();
    this.#follow(socket);
  }

  /** The end of the current connection no longer ends the channel, because another one follows. */
  beginReplacing(): void {
    this.#isReplacing = true;
  }

  replace(socket: Socket): void {
    this.#isReplacing = false;
    const former = this.writer;
    this.writer = socket;
    former.destroy();
    if (this.isClosed) {
      socket.destroy();
      return;
    }
    this.#follow(socket);
    if (this.receiver !== undefined) this.startReader();
  }

  /** Ends the channel when no other connection could be made. */
  giveUp(cause: Error): void {
    this.#isReplacing = false;
    this.end(cause);
  }

  protected get reader(): Socket {
    return this.writer;
  }

  protected startReader(): void {
    const socket = this.writer;
    socket.on("data", (chunk: Uint8Array) => {
      if (socket === this.writer) this.receive(chunk);
    });
    socket.resume();
  }

  protected release(): void {
    this.writer.destroy();
  }

  #follow(socket: Socket): void {
    const lost = (cause: Error) => {
      if (socket === this.writer && !this.#isReplacing) this.end(cause);
    };
    socket.on("error", lost);
    socket.on("end", () => lost(new Error("the connection has ended")));
    socket.on("close", () => lost(new Error("the connection has ended")));
  }
}
