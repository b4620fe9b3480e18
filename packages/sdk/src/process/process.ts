import {
  abortError,
  bytesOf,
  type OutputChunk,
  type ProcessExitBody,
  SandboxError,
  type TerminalSize,
} from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import { createDeferred } from "../deferred.ts";
import type { HistoryMark } from "../rollback/history-mark.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import { OutputReader } from "./output-reader.ts";
import type { ProcessEnding } from "./process-ending.ts";
import { StdinStream } from "./stdin-stream.ts";

export type ProcessExit = ProcessExitBody;

export interface ProcessOptions {
  readonly id: string;
  readonly pid: number;
  /** The offset to read its output from. */
  readonly offset: number;
  readonly ending: ProcessEnding;
  readonly history: HistoryMark;
  /** A reader that is already open; the first loop uses it. */
  readonly reader: OutputReader;
}

/** A handle of a process in a sandbox. Dropping the handle does not end the process. */
export class Process implements AsyncDisposable {
  readonly id: string;
  readonly pid: number;
  readonly #link: SandboxLink;
  readonly #options: ProcessOptions;
  readonly #readers: Set<OutputReader>;
  #unclaimed: OutputReader | undefined;
  #stdin: StdinStream | undefined;
  #isDetached = false;

  constructor(link: SandboxLink, options: ProcessOptions) {
    this.id = options.id;
    this.pid = options.pid;
    this.#link = link;
    this.#options = options;
    this.#unclaimed = options.reader;
    this.#readers = new Set([options.reader]);
  }

  /**
   * Its output from the handle's offset to the end. Each loop reads at its own pace. After a lost connection the client
   * reconnects and continues at the next byte.
   */
  get output(): AsyncIterable<OutputChunk> {
    return { [Symbol.asyncIterator]: () => this.#read() };
  }

  /** The bytes of standard output, or of the terminal. */
  get stdout(): AsyncIterable<Uint8Array> {
    return bytesOf(this.output, (source) => source !== "stderr");
  }

  get stderr(): AsyncIterable<Uint8Array> {
    return bytesOf(this.output, (source) => source === "stderr");
  }

  /** Resolves when it has ended, even if its output is not read; a non-zero exit code is a result. */
  async wait({ signal }: CallOptions = {}): Promise<ProcessExit> {
    if (signal === undefined) return await this.#options.ending.wait();
    const { promise, reject } = createDeferred<never>();
    const abort = () => reject(abortError(signal, `waiting for process ${this.id}`));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    try {
      return await Promise.race([promise, this.#options.ending.wait()]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Resolves when the process's pipe has accepted the bytes. Writes keep the order of the calls. */
  write(input: string | Uint8Array): Promise<void> {
    return this.#input().write(typeof input === "string" ? new TextEncoder().encode(input) : input);
  }

  closeStdin(): Promise<void> {
    return this.#input().finish();
  }

  /** Sends a signal such as "SIGTERM" to the process, or to it and all its descendants. */
  async signal(
    name: string,
    { target, signal }: CallOptions & { readonly target?: "process" | "tree" | undefined } = {},
  ): Promise<void> {
    await this.#link.http.empty("signalProcess", { path: this.#path, json: { signal: name, target }, signal });
  }

  /** Kills it and all its descendants. */
  kill(options: CallOptions = {}): Promise<void> {
    return this.signal("SIGKILL", { ...options, target: "tree" });
  }

  async resize({ rows, cols }: TerminalSize, { signal }: CallOptions = {}): Promise<void> {
    const json = { rows, cols };
    await this.#link.http.empty("resizeProcess", { path: this.#path, json, signal, isRepeatable: true });
  }

  /** Ends every loop over its output; the process keeps running, and `attach` finds it again. */
  detach(): void {
    this.#isDetached = true;
    this.#options.ending.markUnread();
    for (const reader of this.#readers) reader.close();
    this.#readers.clear();
    this.#unclaimed = undefined;
    this.#stdin?.close();
    this.#stdin = undefined;
  }

  /** Kills it if it runs, and makes the node forget it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.detach();
    try {
      await this.#link.http.empty("deleteProcess", { path: this.#path, isRepeatable: true });
    } catch (thrown) {
      if (!isGone(thrown)) throw thrown;
    }
  }

  async *#read(): AsyncGenerator<OutputChunk, void, undefined> {
    if (this.#isDetached) return;
    const reader = this.#unclaimed ?? this.#another();
    this.#unclaimed = undefined;
    try {
      yield* reader;
    } finally {
      reader.close();
      this.#readers.delete(reader);
      this.#options.ending.markUnread();
    }
  }

  #another(): OutputReader {
    const { offset, ending, history } = this.#options;
    const reader = new OutputReader(this.#link, { process: this.id, offset, ending, history });
    this.#readers.add(reader);
    return reader;
  }

  #input(): StdinStream {
    this.#stdin ??= new StdinStream(this.#link, { process: this.id, history: this.#options.history });
    return this.#stdin;
  }

  get #path() {
    return { id: this.#link.id, process: this.id };
  }
}

/** A process that was forgotten, or whose sandbox has ended, needs no disposal. */
function isGone(thrown: unknown): boolean {
  return ["not_found", "failed_precondition", "gone"].includes(SandboxError.from(thrown).code);
}
