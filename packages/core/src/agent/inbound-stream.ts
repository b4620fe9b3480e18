import { ChunkQueue, type Clock, SandboxError, type StreamChunk } from "@sandpiper/protocol";
import type { InboundFlow } from "./inbound-flow.ts";
import type { LentMemory } from "./lent-memory.ts";

/** Receives the bytes of a call. */
export interface Inbound {
  readonly flow: InboundFlow;
  /** Memory for the next chunk. */
  place?(size: number): Uint8Array | undefined;
  chunk(chunk: StreamChunk): void;
  /** The agent has sent its last byte, before the answer to the call. */
  ended(): void;
  /** The call is answered. */
  finish(): void;
  fail(error: SandboxError): void;
}

export interface InboundStreamOptions {
  readonly flow: InboundFlow;
  /** A chunk is valid only until the reader asks for the next one. */
  readonly memory?: LentMemory | undefined;
  /** True if the other direction may continue after the end of this one, as in a tunnel. */
  readonly allowsHalfOpen?: boolean;
  /** Ends the call with this error. */
  readonly cancel: (error: SandboxError) => void;
  /** How long the agent may send nothing while the reader waits; undefined for no limit. */
  readonly idle?: { readonly clock: Clock; readonly timeoutMs: number; readonly error: () => SandboxError } | undefined;
}

interface Waiting {
  readonly resolve: (result: IteratorResult<StreamChunk, undefined>) => void;
  readonly reject: (error: SandboxError) => void;
  readonly stopTimer: () => void;
}

const done: IteratorResult<StreamChunk, undefined> = { done: true, value: undefined };
const noTimer = () => {};

/** A stream for one reader; its window limits the unread bytes. */
export class InboundStream implements Inbound, AsyncIterableIterator<StreamChunk, undefined> {
  readonly #options: InboundStreamOptions;
  readonly #queue = new ChunkQueue();
  #waiting: Waiting | undefined;
  #current: Uint8Array | undefined;
  #end: "open" | "finished" | SandboxError = "open";

  constructor(options: InboundStreamOptions) {
    this.#options = options;
  }

  get flow(): InboundFlow {
    return this.#options.flow;
  }

  place(size: number): Uint8Array | undefined {
    return this.#end === "open" ? this.#options.memory?.offer(size) : undefined;
  }

  chunk(chunk: StreamChunk): void {
    // An empty message costs its sender no credit, so it must not cost memory here.
    if (this.#end !== "open" || chunk.bytes.length === 0) return;
    this.#options.memory?.take(chunk.bytes);
    const waiting = this.#waiting;
    if (waiting === undefined) {
      this.#queue.push(chunk);
      return;
    }
    this.#wake();
    this.#current = chunk.bytes;
    waiting.resolve({ done: false, value: chunk });
    this.flow.take(chunk.bytes.length);
  }

  ended(): void {
    // Otherwise the answer may still be an error that the reader must see.
    if (this.#options.allowsHalfOpen) this.finish();
  }

  finish(): void {
    if (this.#end !== "open") return;
    this.#end = "finished";
    this.#wake()?.resolve(done);
  }

  fail(error: SandboxError): void {
    if (this.#end !== "open") return;
    this.#end = error;
    this.#wake()?.reject(error);
  }

  next(): Promise<IteratorResult<StreamChunk, undefined>> {
    if (this.#current !== undefined) this.#options.memory?.giveBack(this.#current);
    const chunk = this.#queue.shift();
    this.#current = chunk?.bytes;
    if (chunk !== undefined) {
      if (this.#end === "open") this.flow.take(chunk.bytes.length);
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.#end === "finished") return Promise.resolve(done);
    if (this.#end !== "open") return Promise.reject(this.#end);
    if (this.#waiting !== undefined) return Promise.reject(secondReader());
    return new Promise((resolve, reject) => {
      const { idle } = this.#options;
      const stopTimer =
        idle === undefined ? noTimer : idle.clock.schedule(idle.timeoutMs, () => this.cancel(idle.error()));
      this.#waiting = { resolve, reject, stopTimer };
    });
  }

  return(): Promise<IteratorResult<StreamChunk, undefined>> {
    this.#queue.clear();
    if (this.#end === "open") {
      this.finish();
      this.cancel(readerLeft());
    }
    return Promise.resolve(done);
  }

  cancel(error: SandboxError): void {
    this.#options.cancel(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #wake(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.stopTimer();
    return waiting;
  }
}

function secondReader(): SandboxError {
  return new SandboxError("stream_already_read", { message: "a stream has one reader, and it is already waiting" });
}

function readerLeft(): SandboxError {
  return new SandboxError("reader_left", { message: "a stream was not read to its end" });
}
