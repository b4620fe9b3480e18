import type { Duplex } from "node:stream";
import { HostChannel } from "../../host/host-channel.ts";
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
export class AttachChannel extends HostChannel {
  protected readonly writer: Duplex;
  readonly #onLost: () => void;
  readonly #frames: FrameStripper;
  #stderrTail = "";

  constructor({ stream, onLost }: AttachChannelOptions) {
    super();
    this.writer = stream;
    this.#onLost = onLost;
    this.#frames = new FrameStripper((kind, bytes) => this.#read(kind, bytes));
    stream.on("error", (error) => this.end(error));
    stream.on("end", () => this.end(new Error("the engine ended the stream")));
    stream.on("close", () => this.end(new Error("the engine closed the stream")));
  }

  protected get reader(): Duplex {
    return this.writer;
  }

  /** The end of the agent's standard error. */
  get stderrTail(): string {
    return this.#stderrTail;
  }

  protected startReader(): void {
    this.writer.on("data", (chunk: Uint8Array) => {
      if (!this.#frames.push(chunk)) this.end(new Error("the engine sent output without stream frames"));
    });
  }

  protected release(cause: Error | undefined): void {
    this.writer.destroy();
    if (cause !== undefined) this.#onLost();
  }

  #read(kind: number, bytes: Uint8Array): void {
    if (this.isClosed) return;
    if (kind === STDOUT) this.receive(bytes);
    else this.#stderrTail = `${this.#stderrTail}${Buffer.from(bytes).toString()}`.slice(-KEPT_CHARACTERS);
  }
}
