import type { Duplex } from "node:stream";
import type { Channel, ChannelReceiver } from "@sandpiper/core";
import { writePieces } from "../../host/write-pieces.ts";
import { FrameStripper } from "./frame-stripper.ts";

const STDOUT = 1;
/** The agent's last messages are short. */
const KEPT_CHARACTERS = 2000;

export interface AttachChannelOptions {
  /** The attached streams of a container or of a relay in it, with the engine's framing. */
  readonly stream: Duplex;
  /** Called when the stream ends without `close`. */
  readonly onLost: () => void;
}

/** A channel over standard streams that the engine forwards. */
export class AttachChannel implements Channel {
  readonly #stream: Duplex;
  readonly #onLost: () => void;
  readonly #frames: FrameStripper;
  #receiver: ChannelReceiver | undefined;
  #isClosed = false;
  #stderrTail = "";

  constructor({ stream, onLost }: AttachChannelOptions) {
    this.#stream = stream;
    this.#onLost = onLost;
    this.#frames = new FrameStripper((kind, bytes) => this.#receive(kind, bytes));
    stream.on("error", (error) => this.#end(error));
    stream.on("end", () => this.#end(new Error("the engine ended the stream")));
    stream.on("close", () => this.#end(new Error("the engine closed the stream")));
  }

  /** The end of the agent's standard error. */
  get stderrTail(): string {
    return this.#stderrTail;
  }

  open(receiver: ChannelReceiver): void {
    if (this.#isClosed) {
      receiver.closed(new Error("the channel was closed before it was opened"));
      return;
    }
    this.#receiver = receiver;
    this.#stream.on("data", (chunk: Uint8Array) => {
      if (!this.#frames.push(chunk)) this.#end(new Error("the engine sent output without stream frames"));
    });
  }

  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    return this.#isClosed ? undefined : writePieces(this.#stream, pieces);
  }

  close(): void {
    this.#end(undefined);
  }

  #receive(kind: number, bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (kind === STDOUT) this.#receiver?.data(bytes);
    else this.#stderrTail = `${this.#stderrTail}${Buffer.from(bytes).toString()}`.slice(-KEPT_CHARACTERS);
  }

  #end(cause: Error | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream.destroy();
    if (cause !== undefined) this.#onLost();
    this.#receiver?.closed(cause);
  }
}
