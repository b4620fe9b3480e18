import { SandboxError } from "@sandpiper/protocol";
import { createDeferred } from "../deferred.ts";
import type { OutputEvent } from "./session-event.ts";

/** Output of an execution: complete characters of one stream. */
export interface SessionOutput {
  readonly source: "stdout" | "stderr";
  readonly text: string;
  /** The position of its first byte in the execution's output, stdout and stderr together. */
  readonly offset: number;
  /** Where to resume after it. */
  readonly next: string;
  /** How many bytes before it are lost, because the output was larger than its journal. */
  readonly dropped: number;
}

/** How an execution ended. */
export interface SessionExit {
  /** 128 + the signal's number if a signal ended it. */
  readonly exitCode: number;
  /** A time limit, a memory limit, a signal, or dropped output. */
  readonly message: string | undefined;
}

/** Code that runs in a session. */
export interface SessionExecution extends AsyncIterable<SessionOutput> {
  readonly id: string;
  /** Where to resume after the output that was read; with the id it is enough to continue in another program. */
  readonly next: string;
  /** Its output as it arrives, without loss or repeat across connections and nodes. One loop can read it. */
  [Symbol.asyncIterator](): AsyncIterator<SessionOutput, void, undefined>;
  /** Resolves when it has ended; a non-zero exit code is a result. */
  wait(): Promise<SessionExit>;
  /** Kills it and all its descendants; `wait` then resolves. */
  kill(): Promise<void>;
}

export interface ExecutionStreamOptions {
  readonly id: string;
  /** Undefined if another client started it. */
  readonly source?: { readonly language: string; readonly code: string } | undefined;
  readonly next?: string | undefined;
  /** Receives the output in place of a loop. */
  readonly onOutput?: ((output: SessionOutput) => void) | undefined;
  readonly kill: (execution: string) => Promise<void>;
  readonly onSettled: (execution: ExecutionStream) => void;
}

/** An execution, with what the session's connections need to know about it. */
export class ExecutionStream implements SessionExecution {
  readonly id: string;
  /** On this connection or an earlier one. */
  wasSent: boolean;
  readonly #options: ExecutionStreamOptions;
  readonly #queue = new OutputQueue();
  readonly #exit = createDeferred<SessionExit>();
  #received: string;
  #read: string;
  #isStarted: boolean;
  #isKilled = false;
  #isAbandoned = false;
  #isSettled = false;
  #error: SandboxError | undefined;
  #wake: (() => void) | undefined;

  constructor(options: ExecutionStreamOptions) {
    this.id = options.id;
    this.#options = options;
    this.#received = options.next ?? "0";
    this.#read = this.#received;
    this.wasSent = options.source === undefined;
    this.#isStarted = options.source === undefined;
    // A caller that only loops does not wait.
    this.#exit.promise.catch(() => {});
  }

  get next(): string {
    return this.#read;
  }

  /** Where the next connection continues: after the output that has arrived. */
  get received(): string {
    return this.#received;
  }

  /** The node has confirmed that it runs. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }

  /** Its caller has given it up, and the session waits for its end. */
  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** The message that starts it; undefined if another client did. */
  get request(): object | undefined {
    const { source } = this.#options;
    return source && { ...source, execution: this.id };
  }

  wait(): Promise<SessionExit> {
    return this.#exit.promise;
  }

  async kill(): Promise<void> {
    if (this.#isSettled) return;
    this.#isKilled = true;
    if (this.#isStarted) await this.#options.kill(this.id);
    else if (!this.wasSent)
      this.fail(new SandboxError("aborted", { message: "the code was killed before it started" }));
  }

  /** Kills it and ignores its output. */
  abandon(): void {
    this.#isAbandoned = true;
    // The caller has its error already.
    this.kill().catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SessionOutput, void, undefined> {
    for (;;) {
      const output = this.#queue.shift();
      if (output !== undefined) {
        this.#read = output.next;
        yield output;
      } else if (this.#error !== undefined) throw this.#error;
      else if (this.#isSettled) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  started(): void {
    const isFirst = !this.#isStarted;
    this.#isStarted = true;
    if (isFirst && this.#isKilled) this.kill().catch(() => {});
  }

  take({ event, data, offset, next, dropped = 0 }: OutputEvent): void {
    this.#received = next;
    if (this.#isSettled || this.#isAbandoned) return;
    const output: SessionOutput = { source: event, text: data, offset, next, dropped };
    if (this.#options.onOutput === undefined) this.#queue.push(output);
    else {
      this.#read = next;
      this.#options.onOutput(output);
    }
    this.#wake?.();
  }

  done(exit: SessionExit): void {
    if (this.#isSettled) return;
    this.#exit.resolve(exit);
    this.#settle();
  }

  fail(error: SandboxError): void {
    if (this.#isSettled) return;
    this.#error = error;
    this.#exit.reject(error);
    this.#settle();
  }

  #settle(): void {
    this.#isSettled = true;
    this.#wake?.();
    this.#options.onSettled(this);
  }
}

/** Removes from the front in constant time, which an array of many elements does not. */
class OutputQueue {
  #items: SessionOutput[] = [];
  #head = 0;

  push(output: SessionOutput): void {
    this.#items.push(output);
  }

  shift(): SessionOutput | undefined {
    const output = this.#items[this.#head++];
    if (output === undefined || this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return output;
  }
}
