import { SandboxError, STDIN_WINDOW_BYTES } from "@sandpiper/protocol";
import { createDeferred, type Deferred } from "../deferred.ts";
import { type HistoryMark, isRolledBack } from "../rollback/history-mark.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import type { Opened, OpenMessage, SocketStream, StreamPort } from "../socket/socket-stream.ts";

const PIECE_BYTES = 256 * 1024;
/** An open stream would keep the connection open, and a program from ending. */
const IDLE_MS = 500;

interface Write {
  readonly bytes: Uint8Array;
  /** Positions in the input of this stream. */
  readonly start: number;
  readonly end: number;
  readonly done: Deferred<void>;
}

/** Standard input of a process, open while there is something to write. After a lost connection the client sends the bytes again that had not arrived. */
export class StdinStream implements SocketStream {
  readonly #link: SandboxLink;
  readonly #process: string;
  readonly #history: HistoryMark;
  readonly #writes: Write[] = [];
  /** Undefined while nothing was written for some time. */
  #port: StreamPort | undefined;
  #cancelRest: (() => void) | undefined;
  /** The position of its first byte in all input of the process, to which others may have written before. */
  #origin: number | undefined;
  #maySend = false;
  #given = 0;
  #sent = 0;
  #taken = 0;
  #finish: Deferred<void> | undefined;
  #failure: SandboxError | undefined;

  constructor(link: SandboxLink, { process, history }: { readonly process: string; readonly history: HistoryMark }) {
    this.#link = link;
    this.#process = process;
    this.#history = history;
  }

  /** Resolves when the process's pipe has accepted the bytes. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#failure !== undefined || this.#finish !== undefined)
      return Promise.reject(this.#failure ?? this.#closed());
    const done = createDeferred<void>();
    if (bytes.length === 0) return Promise.resolve();
    this.#writes.push({ bytes, start: this.#given, end: this.#given + bytes.length, done });
    this.#given += bytes.length;
    this.#open();
    this.#pump();
    return done.promise;
  }

  /** Ends the input after all bytes written so far. */
  finish(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#finish === undefined) {
      this.#finish = createDeferred<void>();
      this.#finish.promise.catch(() => {});
      this.#open();
      this.#pump();
    }
    return this.#finish.promise;
  }

  close(): void {
    this.#port?.close();
    this.fail(this.#closed());
  }

  openMessage(stream: number): OpenMessage {
    this.#maySend = false;
    return { type: "open", stream, kind: "stdin", sandbox: this.#link.id, process: this.#process };
  }

  opened({ offset = 0, rollbacks = 0 }: Opened): void {
    const loss = this.#history.enter(rollbacks, this.#position);
    if (loss !== undefined) {
      this.#port?.close();
      this.fail(loss);
      return;
    }
    this.#origin ??= offset;
    this.#maySend = true;
    this.#take(offset);
    this.#sent = this.#taken;
    this.#pump();
  }

  ack(offset: number): void {
    this.#take(offset);
    this.#pump();
  }

  end(): void {
    this.#cancelRest?.();
    if (this.#finish === undefined || this.#taken < this.#given) this.fail(this.#closed());
    else {
      this.#failure = this.#closed();
      this.#finish.resolve();
    }
  }

  fail(given: SandboxError, rollbacks?: number): void {
    this.#cancelRest?.();
    const error = this.#history.lossAt(rollbacks, this.#position) ?? given;
    this.#failure ??= error;
    for (const { done } of this.#writes.splice(0)) done.reject(error);
    // Closing an input that is already closed is a success.
    const hasEnded = this.#taken === this.#given && error.code !== "unavailable" && !isRolledBack(error);
    if (hasEnded) this.#finish?.resolve();
    else this.#finish?.reject(error);
  }

  #open(): void {
    this.#cancelRest?.();
    this.#cancelRest = undefined;
    this.#port ??= this.#link.connection.open(this);
  }

  /** Everything written has arrived, so the next write can start anew: others may have written by then. */
  #rest(): void {
    this.#port?.close();
    this.#port = undefined;
    this.#origin = undefined;
    this.#maySend = false;
    this.#given = 0;
    this.#sent = 0;
    this.#taken = 0;
  }

  /** The position up to which the process has accepted it. */
  get #position(): number {
    return (this.#origin ?? 0) + this.#taken;
  }

  #take(offset: number): void {
    this.#taken = Math.max(this.#taken, Math.min(this.#given, offset - (this.#origin ?? 0)));
    while (this.#writes[0] !== undefined && this.#writes[0].end <= this.#taken) this.#writes.shift()?.done.resolve();
    if (this.#writes.length > 0 || this.#finish !== undefined) return;
    this.#cancelRest ??= this.#link.connection.timing.schedule(IDLE_MS, () => {
      this.#cancelRest = undefined;
      this.#rest();
    });
  }

  #pump(): void {
    if (!this.#maySend || this.#origin === undefined) return;
    for (const { bytes, start, end } of this.#writes) {
      while (this.#sent < end && this.#sent - this.#taken < STDIN_WINDOW_BYTES) {
        const from = this.#sent - start;
        const room = STDIN_WINDOW_BYTES - (this.#sent - this.#taken);
        const piece = bytes.subarray(from, from + Math.min(PIECE_BYTES, room));
        this.#port?.sendInput(this.#origin + this.#sent, piece);
        this.#sent += piece.length;
      }
      if (this.#sent < end) return;
    }
    if (this.#finish === undefined) return;
    this.#maySend = false;
    this.#port?.send({ type: "finish", offset: this.#origin + this.#given });
  }

  #closed(): SandboxError {
    return new SandboxError("stdin_closed", { message: `standard input of process ${this.#process} is closed` });
  }
}
