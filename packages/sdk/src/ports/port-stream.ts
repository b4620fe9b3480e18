import { abortError, type DataFrame, SandboxError, STDIN_WINDOW_BYTES } from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import { createDeferred, type Deferred } from "../deferred.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import type { OpenMessage, SocketStream, StreamPort } from "../socket/socket-stream.ts";

/** How many bytes may be in flight or unread. */
const WINDOW_BYTES = 1024 * 1024;
const PIECE_BYTES = 256 * 1024;

interface Write {
  readonly bytes: Uint8Array;
  /** Positions in all bytes written. */
  readonly start: number;
  readonly end: number;
  readonly done: Deferred<void>;
}

export interface PortStreamOptions extends CallOptions {
  readonly port: number;
}

/** The stream of one connection to a port. It is not resumed: the server in the sandbox would see another connection. */
export class PortStream implements SocketStream {
  readonly endsWithConnection = true;
  readonly #link: SandboxLink;
  readonly #options: PortStreamOptions;
  readonly #port: StreamPort;
  readonly #ready = createDeferred<void>();
  readonly #closed = createDeferred<void>();
  readonly #received: Uint8Array[] = [];
  readonly #writes: Write[] = [];
  #ungrantedBytes = 0;
  #given = 0;
  #sent = 0;
  #acknowledged = 0;
  #isOpen = false;
  #isReceived = false;
  #finish: Deferred<void> | undefined;
  #isFinishSent = false;
  #failure: SandboxError | undefined;
  #wake: (() => void) | undefined;
  readonly #abort = () => this.stop(abortError(this.#options.signal as AbortSignal, "the connection"));

  constructor(link: SandboxLink, options: PortStreamOptions) {
    this.#link = link;
    this.#options = options;
    for (const { promise } of [this.#ready, this.#closed]) promise.catch(() => {});
    this.#port = link.connection.open(this);
    options.signal?.addEventListener("abort", this.#abort, { once: true });
    if (options.signal?.aborted) this.#abort();
  }

  /** Resolves when the server in the sandbox has accepted the connection. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  write(bytes: Uint8Array): Promise<void> {
    if (this.#failure !== undefined || this.#finish !== undefined)
      return Promise.reject(this.#failure ?? writtenAfterEnd());
    if (bytes.length === 0) return Promise.resolve();
    const done = createDeferred<void>();
    this.#writes.push({ bytes, start: this.#given, end: this.#given + bytes.length, done });
    this.#given += bytes.length;
    this.#pump();
    return done.promise;
  }

  /** Ends the writing direction; resolves when all bytes before it were accepted. */
  finish(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    this.#finish ??= createDeferred<void>();
    this.#finish.promise.catch(() => {});
    this.#pump();
    return this.#finish.promise;
  }

  async *read(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const bytes = this.#received.shift();
      if (bytes !== undefined) {
        yield bytes;
        this.#take(bytes.length);
      } else if (this.#isReceived) return;
      else if (this.#failure !== undefined) throw this.#failure;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  /** Ends both directions; without an error, both have ended by themselves. */
  stop(error?: SandboxError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error ?? writtenAfterEnd();
    this.#options.signal?.removeEventListener("abort", this.#abort);
    this.#port.close();
    if (error === undefined) {
      this.#closed.resolve();
      this.#finish?.resolve();
    } else {
      this.#ready.reject(error);
      this.#closed.reject(error);
      this.#finish?.reject(error);
      for (const { done } of this.#writes.splice(0)) done.reject(error);
    }
    this.#wake?.();
  }

  openMessage(stream: number): OpenMessage {
    const { port } = this.#options;
    return { type: "open", stream, kind: "connect", sandbox: this.#link.id, port, window: WINDOW_BYTES };
  }

  opened(): void {
    this.#isOpen = true;
    this.#ready.resolve();
    this.#pump();
  }

  data({ bytes }: DataFrame): void {
    this.#received.push(bytes);
    this.#wake?.();
  }

  ack(offset: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, Math.min(offset, this.#sent));
    while (this.#writes[0] !== undefined && this.#writes[0].end <= this.#acknowledged) {
      this.#writes.shift()?.done.resolve();
    }
    this.#pump();
  }

  finished(): void {
    this.#isReceived = true;
    this.#wake?.();
  }

  end(): void {
    this.#isReceived = true;
    this.stop();
  }

  fail(error: SandboxError): void {
    this.stop(error);
  }

  #take(bytes: number): void {
    this.#ungrantedBytes += bytes;
    if (this.#ungrantedBytes * 2 < WINDOW_BYTES) return;
    this.#port.send({ type: "credit", amount: this.#ungrantedBytes });
    this.#ungrantedBytes = 0;
  }

  #pump(): void {
    if (!this.#isOpen || this.#failure !== undefined) return;
    for (const { bytes, start, end } of this.#writes) {
      while (this.#sent < end && this.#sent - this.#acknowledged < STDIN_WINDOW_BYTES) {
        const from = this.#sent - start;
        const room = STDIN_WINDOW_BYTES - (this.#sent - this.#acknowledged);
        const piece = bytes.subarray(from, from + Math.min(PIECE_BYTES, room));
        this.#port.sendInput(this.#sent, piece);
        this.#sent += piece.length;
      }
      if (this.#sent < end) return;
    }
    if (this.#finish === undefined) return;
    if (!this.#isFinishSent) this.#port.send({ type: "finish", offset: this.#given });
    this.#isFinishSent = true;
    if (this.#acknowledged === this.#given) this.#finish.resolve();
  }
}

function writtenAfterEnd(): SandboxError {
  return new SandboxError("stream_closed", { message: "the connection was already ended" });
}
