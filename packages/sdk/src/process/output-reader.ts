import { ChunkQueue, type OutputChunk, type OutputSource, type SandboxError } from "@sandpiper/protocol";
import { isRolledBack } from "../rollback/history-mark.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import type { ProcessEnding } from "./process-ending.ts";
import { ProcessStream, type ProcessStreamOptions, WINDOW_BYTES } from "./process-stream.ts";

export interface OutputReaderOptions
  extends Omit<ProcessStreamOptions, "onOpened" | "onChunk" | "onEnd" | "onError">,
    Partial<Pick<ProcessStreamOptions, "onOpened" | "onError">> {
  readonly ending: ProcessEnding;
}

/** The output of a process, at the pace of one reader. */
export class OutputReader implements AsyncIterable<OutputChunk> {
  readonly #stream: ProcessStream;
  readonly #queue = new ChunkQueue<OutputSource>();
  #wake: (() => void) | undefined;
  #isDone = false;
  #error: SandboxError | undefined;

  constructor(link: SandboxLink, options: OutputReaderOptions) {
    this.#stream = new ProcessStream(link, {
      ...options,
      onOpened: (pid) => options.onOpened?.(pid),
      onChunk: (chunk) => {
        this.#queue.push(chunk);
        this.#wake?.();
        // With a slow reader the exit may not arrive on this stream.
        if (this.#stream.untakenBytes * 2 > WINDOW_BYTES) options.ending.markUnread();
      },
      onEnd: (exit) => {
        this.#finish();
        options.ending.resolve(exit);
      },
      onError: (error) => {
        this.#error = error;
        this.#finish();
        if (isRolledBack(error)) options.ending.fail(error);
        else options.ending.markUnread();
        options.onError?.(error);
      },
    });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutputChunk, void, undefined> {
    for (;;) {
      const chunk = this.#queue.shift();
      if (chunk !== undefined) {
        this.#stream.take(chunk.bytes.length);
        yield chunk;
      } else if (this.#error !== undefined) throw this.#error;
      else if (this.#isDone) return;
      else await this.#next();
    }
  }

  /** Ends the loop; the process keeps running. */
  close(): void {
    this.#stream.close();
    this.#finish();
  }

  /** Kills and forgets the process. */
  abandon(): void {
    this.#stream.abandon();
    this.#finish();
  }

  #finish(): void {
    this.#isDone = true;
    this.#wake?.();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
