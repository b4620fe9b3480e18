import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { GuestFlow, Tunnel } from "@sandpiper/core";

export interface FakeFlowOptions {
  readonly name?: string | null;
  readonly address?: string;
  readonly port: number;
}

/** A connection of a sandbox, seen from the program inside that opened it. */
export class FakeFlow implements GuestFlow {
  static #count = 0;
  readonly id = ++FakeFlow.#count;
  readonly name: string | null;
  readonly address: string;
  readonly port: number;
  readonly pid = 41;
  readonly program = "curl";
  readonly #gone = new AbortController();
  readonly gone = this.#gone.signal;
  /** What the program writes and reads. */
  readonly #outgoing = new PassThrough();
  readonly #incoming = new PassThrough();
  readonly #closed = Promise.withResolvers<void>();
  isAccepted = false;
  isRefused = false;
  /** The connection was reset after it was accepted. */
  isReset = false;
  receivedText = "";
  hasEnded = false;

  constructor({ name = null, address = "198.18.0.7", port }: FakeFlowOptions) {
    this.name = name;
    this.address = address;
    this.port = port;
    this.#closed.promise.catch(() => {});
    this.#outgoing.on("error", () => {});
    this.#incoming.on("data", (bytes: Buffer) => {
      this.receivedText += bytes.toString("latin1");
    });
    this.#incoming.on("end", () => {
      this.hasEnded = true;
    });
  }

  send(bytes: string | Uint8Array): this {
    this.#outgoing.write(bytes);
    return this;
  }

  end(): this {
    this.#outgoing.end();
    return this;
  }

  /** The program closes before anyone has decided. */
  leave(): void {
    this.#gone.abort();
  }

  /** The program breaks an accepted connection. */
  break(): void {
    this.#fail();
  }

  refuse(): void {
    if (!this.isAccepted) this.isRefused = true;
  }

  accept(): Promise<Tunnel> {
    this.isAccepted = true;
    const [outgoing, incoming] = [this.#outgoing, this.#incoming];
    const close = () => {
      if (incoming.writableEnded && outgoing.readableEnded) return;
      this.isReset = true;
      this.#fail();
    };
    return Promise.resolve({
      readable: outgoing as AsyncIterable<Uint8Array>,
      async write(bytes: Uint8Array) {
        if (!incoming.write(Buffer.from(bytes))) await once(incoming, "drain");
      },
      async end() {
        incoming.end();
      },
      close,
      closed: this.#closed.promise,
      async [Symbol.asyncDispose]() {
        close();
      },
    });
  }

  #fail(): void {
    const error = new Error("the connection broke");
    this.#closed.reject(error);
    this.#outgoing.destroy(error);
  }
}
