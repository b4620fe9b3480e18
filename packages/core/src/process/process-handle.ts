import {
  type AgentMethod,
  type AgentParams,
  type AgentResult,
  bytesOf,
  type CommandOptions,
  type OutputChunk,
  SandboxError,
  type SpawnParams,
  type TerminalSize,
} from "@sandpiper/protocol";
import type { CallOptions } from "../agent/agent-client.ts";
import type { InboundStream } from "../agent/inbound-stream.ts";
import { type ProcessExit, processExit } from "./process-exit.ts";
import { type ReadOutputOptions, readOutput } from "./read-output.ts";
import { stdinPieces } from "./stdin-pieces.ts";

export interface StartOptions extends CommandOptions {
  /** Its id; random by default. Starting the same id twice fails with `already_exists`. */
  readonly id?: string | undefined;
  /** If true, `write` sends its standard input, which is empty otherwise. A terminal always has input. */
  readonly stdin?: boolean | undefined;
  /** Runs the command on a terminal of this size. */
  readonly pty?: TerminalSize | undefined;
  /** How much output the agent keeps for later readers. */
  readonly journalBytes?: number | undefined;
  /**
   * Reuse memory: a chunk is valid only until the reader asks for the next one. Large output then creates no garbage.
   */
  readonly lendsMemory?: boolean | undefined;
  /**
   * Request its output together with the start, which saves a round trip and keeps all output for a late reader.
   */
  readonly isRead?: boolean | undefined;
  /** The caller may have started this id before, without an answer: a process that a checkpoint lost is not started again. */
  readonly isRepeated?: boolean | undefined;
}

export interface AttachOptions {
  /** The offset to read its output from; 0 is the start. */
  readonly offset?: number | undefined;
  /** A chunk is valid only until the reader asks for the next one. */
  readonly lendsMemory?: boolean | undefined;
}

/** Output and exit that were requested together with the start. */
export interface BegunReading {
  readonly output: InboundStream;
  readonly exit: Promise<AgentResult<"process.wait">>;
  /** Ends the reading. */
  readonly detached: AbortController;
}

export interface ProcessHandleOptions extends Pick<ReadOutputOptions, "offset" | "client" | "lendsMemory"> {
  readonly id: string;
  readonly pid: number;
  readonly begun?: BegunReading | undefined;
}

/** A handle of a process in a sandbox. Dropping the handle does not end the process. */
export class ProcessHandle implements AsyncDisposable {
  readonly id: string;
  readonly pid: number;
  readonly #options: ProcessHandleOptions;
  readonly #detached: AbortController;
  #begunOutput: InboundStream | undefined;
  #exit: Promise<ProcessExit> | undefined;
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(options: ProcessHandleOptions) {
    this.id = options.id;
    this.pid = options.pid;
    this.#options = options;
    this.#detached = options.begun?.detached ?? new AbortController();
    this.#begunOutput = options.begun?.output;
    this.#exit = options.begun?.exit.then(processExit);
    this.#forgetBrokenWait();
  }

  /**
   * Its output from the handle's offset to the end. Each loop reads the journal at its own pace, and continues at the next
   * byte after a lost channel.
   */
  get output(): AsyncIterable<OutputChunk> {
    const { client, offset, lendsMemory } = this.#options;
    return {
      [Symbol.asyncIterator]: () => {
        const begun = this.#begunOutput;
        this.#begunOutput = undefined;
        return readOutput({ process: this.id, offset, client, signal: this.#detached.signal, lendsMemory, begun });
      },
    };
  }

  /** The bytes of standard output, or of the terminal. */
  get stdout(): AsyncIterable<Uint8Array> {
    return bytesOf(this.output, (source) => source !== "stderr");
  }

  get stderr(): AsyncIterable<Uint8Array> {
    return bytesOf(this.output, (source) => source === "stderr");
  }

  /** Resolves when it has ended; a non-zero exit code is a result. */
  wait(): Promise<ProcessExit> {
    if (this.#exit !== undefined) return this.#exit;
    const exit = this.#call("process.wait", { process: this.id }, { timeoutMs: Number.POSITIVE_INFINITY });
    this.#exit = exit.then(processExit);
    this.#forgetBrokenWait();
    return this.#exit;
  }

  /** Resolves when the process's pipe has accepted the bytes. Writes keep the order of the calls. */
  write(input: string | Uint8Array): Promise<void> {
    const bytes = typeof input === "string" ? new TextEncoder().encode(input) : input;
    return this.#inOrder(async () => {
      for (const attachment of stdinPieces(bytes)) {
        await this.#call("process.stdin", { process: this.id }, { attachment, timeoutMs: Number.POSITIVE_INFINITY });
      }
    });
  }

  /**
   * Like `write`, for input that may be sent twice: `offset` is the position of its first byte in all input, and bytes that
   * have already arrived are skipped. Resolves with the position after the last accepted byte.
   */
  async writeAt(offset: number, bytes: Uint8Array, options: { readonly close?: boolean } = {}): Promise<number> {
    let position = offset;
    await this.#inOrder(async () => {
      for (const attachment of stdinPieces(bytes)) {
        const params = { process: this.id, offset: position };
        position = (await this.#call("process.stdin", params, { attachment, timeoutMs: Number.POSITIVE_INFINITY }))
          .offset;
      }
      if (options.close) await this.#call("process.stdin", { process: this.id, close: true });
    });
    return position;
  }

  closeStdin(): Promise<void> {
    return this.#inOrder(async () => {
      await this.#call("process.stdin", { process: this.id, close: true });
    });
  }

  /** Sends a signal such as "SIGTERM" to the process, or to it and all its descendants. */
  async signal(name: string, options: { readonly target?: "process" | "tree" | undefined } = {}): Promise<void> {
    await this.#call("process.signal", { process: this.id, signal: name, target: options.target });
  }

  /** Kills it and all its descendants. */
  kill(): Promise<void> {
    return this.signal("SIGKILL", { target: "tree" });
  }

  async resize({ rows, cols }: TerminalSize): Promise<void> {
    await this.#call("process.resize", { process: this.id, rows, cols });
  }

  /** Ends every loop over its output; the process keeps running, and `attach` finds it again. */
  detach(): void {
    this.#detached.abort();
  }

  /** Drops the status and output of a process that has ended. */
  async forget(): Promise<void> {
    await this.#call("process.forget", { process: this.id });
  }

  /** Kills it if it runs, and forgets it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.detach();
    try {
      await this.kill().catch(() => {});
      await this.wait();
      await this.forget();
    } catch (thrown) {
      if (!isGone(thrown)) throw thrown;
    }
  }

  async #call<M extends AgentMethod>(
    method: M,
    params: AgentParams<M>,
    options: CallOptions = {},
  ): Promise<AgentResult<M>> {
    return (await this.#options.client()).call(method, params, options);
  }

  /** After a failure the next wait() tries again. */
  #forgetBrokenWait(): void {
    this.#exit?.catch(() => {
      this.#exit = undefined;
    });
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const turn = this.#lastWrite.then(work);
    this.#lastWrite = turn.catch(() => {});
    return turn;
  }
}

/** A process that was forgotten, or whose sandbox has ended, needs no disposal. */
function isGone(thrown: unknown): boolean {
  const { code } = SandboxError.from(thrown);
  return code === "not_found" || code === "failed_precondition" || code === "gone";
}

export function startParams(options: StartOptions): Pick<SpawnParams, "stdin" | "pty" | "journal_bytes"> {
  return { stdin: options.stdin, pty: options.pty && { ...options.pty }, journal_bytes: options.journalBytes };
}
