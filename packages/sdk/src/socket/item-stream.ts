import { abortError, type SandboxError } from "@sandpiper/protocol";
import { createDeferred } from "../deferred.ts";
import type { Connection } from "./connection.ts";
import type { Item, OpenMessage, SocketStream, StreamPort } from "./socket-stream.ts";

const WINDOW_ITEMS = 1024;

export interface ItemStreamOptions<Kind> {
  readonly what: string;
  /** The message that opens it after the last item received. */
  readonly openMessage: (stream: number, window: number, last: Kind | undefined) => OpenMessage;
  /** Items to insert for those that may have been missed without a connection. */
  readonly onReopened?: (() => readonly Kind[]) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Items for one loop, across lost connections. */
export class ItemStream<Kind extends Item> implements SocketStream, AsyncIterable<Kind>, AsyncDisposable {
  readonly #options: ItemStreamOptions<Kind>;
  readonly #port: StreamPort;
  readonly #ready = createDeferred<void>();
  readonly #items: Kind[] = [];
  #last: Kind | undefined;
  #hasOpened = false;
  #ungranted = 0;
  #isDone = false;
  #error: SandboxError | undefined;
  #wake: (() => void) | undefined;
  readonly #abort = () => this.#stop(abortError(this.#options.signal as AbortSignal, this.#options.what));

  constructor(connection: Connection, options: ItemStreamOptions<Kind>) {
    this.#options = options;
    this.#ready.promise.catch(() => {});
    this.#port = connection.open(this);
    options.signal?.addEventListener("abort", this.#abort, { once: true });
    if (options.signal?.aborted) this.#abort();
  }

  /** Resolves when the stream will miss no later item. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Kind, void, undefined> {
    try {
      for (;;) {
        const item = this.#items.shift();
        if (item !== undefined) {
          this.#grant();
          yield item;
        } else if (this.#error !== undefined) throw this.#error;
        else if (this.#isDone) return;
        else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      this.close();
    }
  }

  /** Ends the loop. */
  close(): void {
    this.#stop(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  openMessage(stream: number): OpenMessage {
    this.#ungranted = 0;
    return this.#options.openMessage(stream, Math.max(1, WINDOW_ITEMS - this.#items.length), this.#last);
  }

  opened(): void {
    if (this.#hasOpened) this.#items.push(...(this.#options.onReopened?.() ?? []));
    this.#hasOpened = true;
    this.#ready.resolve();
    this.#wake?.();
  }

  item(item: Item): void {
    this.#last = item as Kind;
    this.#items.push(item as Kind);
    this.#wake?.();
  }

  end(): void {
    this.#stop(undefined);
  }

  fail(error: SandboxError): void {
    this.#stop(error);
  }

  #stop(error: SandboxError | undefined): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#error = error;
    this.#options.signal?.removeEventListener("abort", this.#abort);
    this.#port.close();
    if (error === undefined) this.#ready.resolve();
    else this.#ready.reject(error);
    this.#wake?.();
  }

  #grant(): void {
    if (++this.#ungranted * 2 < WINDOW_ITEMS) return;
    this.#port.send({ type: "credit", amount: this.#ungranted });
    this.#ungranted = 0;
  }
}
