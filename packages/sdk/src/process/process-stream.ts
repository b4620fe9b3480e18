import {
  type DataFrame,
  type OutputChunk,
  type OutputSource,
  type ProcessExitBody,
  SandboxError,
  type StartProcessBody,
} from "@sandpiper/protocol";
import type { HistoryMark } from "../rollback/history-mark.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import type { End, Opened, OpenMessage, SocketStream, StreamPort } from "../socket/socket-stream.ts";

/** How many bytes may be in flight or unread. */
export const WINDOW_BYTES = 1024 * 1024;

export interface ProcessStreamOptions {
  readonly process: string;
  /** Set when this stream starts the process. */
  readonly spawn?: StartProcessBody | undefined;
  readonly offset: number;
  /** Shared by all streams of a handle. */
  readonly history: HistoryMark;
  readonly onOpened: (pid: number | undefined) => void;
  readonly onChunk: (chunk: OutputChunk) => void;
  readonly onEnd: (exit: ProcessExitBody) => void;
  readonly onError: (error: SandboxError) => void;
}

/** The output of a process from an offset to its end, across lost connections. */
export class ProcessStream implements SocketStream {
  readonly #link: SandboxLink;
  readonly #options: ProcessStreamOptions;
  readonly #port: StreamPort;
  #spawn: StartProcessBody | undefined;
  #position: number;
  #hasSpawned = false;
  #hasOpened = false;
  #isAbandoned = false;
  #untakenBytes = 0;
  #ungrantedBytes = 0;

  constructor(link: SandboxLink, options: ProcessStreamOptions) {
    this.#link = link;
    this.#options = options;
    this.#spawn = options.spawn;
    this.#position = options.offset;
    this.#port = link.connection.open(this);
  }

  /** The offset of the next byte. */
  get position(): number {
    return this.#position;
  }

  get untakenBytes(): number {
    return this.#untakenBytes;
  }

  /** Records consumed bytes. Credit is sent in one message per half window. */
  take(bytes: number): void {
    this.#untakenBytes -= bytes;
    this.#ungrantedBytes += bytes;
    if (this.#ungrantedBytes * 2 < WINDOW_BYTES) return;
    this.#port.send({ type: "credit", amount: this.#ungrantedBytes });
    this.#ungrantedBytes = 0;
  }

  /** The process keeps running. */
  close(): void {
    this.#port.close();
  }

  /** Makes the node kill and forget the process, even if it is not known yet whether it was started. */
  abandon(): void {
    if (this.#hasOpened) this.#kill();
    else if (this.#port.wasSent) this.#spawn = undefined;
    else this.close();
    this.#isAbandoned = true;
  }

  openMessage(stream: number): OpenMessage {
    this.#ungrantedBytes = 0;
    const base = {
      type: "open",
      stream,
      kind: "process",
      sandbox: this.#link.id,
      process: this.#options.process,
    } as const;
    const window = Math.max(1, WINDOW_BYTES - this.#untakenBytes);
    // After a confirmed start the command must not start again, even if the node has forgotten the process.
    const spawn = this.#hasOpened ? undefined : this.#spawn;
    const message = { ...base, spawn, offset: this.#position, window };
    if (spawn === undefined) return message;
    const isRepeated = this.#hasSpawned;
    this.#hasSpawned = true;
    return isRepeated ? { ...message, repeated: true } : message;
  }

  opened({ pid, rollbacks = 0 }: Opened): void {
    const isFirst = !this.#hasOpened;
    this.#hasOpened = true;
    const loss = this.#options.history.enter(rollbacks, this.#position);
    if (this.#isAbandoned) this.#kill();
    else if (loss !== undefined) {
      this.close();
      this.#options.onError(loss);
    } else if (isFirst) this.#options.onOpened(pid);
  }

  data({ source, offset, bytes }: DataFrame): void {
    if (this.#isAbandoned) return;
    const known = this.#position - offset;
    const rest = known > 0 ? bytes.subarray(known) : bytes;
    if (rest.length === 0) return;
    const dropped = Math.max(0, -known);
    const at = this.#position + dropped;
    this.#position = at + rest.length;
    this.#untakenBytes += rest.length;
    this.#options.onChunk({ source: source as OutputSource, bytes: rest, offset: at, dropped });
  }

  end({ exit, offset }: End): void {
    if (this.#isAbandoned) this.#kill();
    else if (exit === undefined) this.#options.onError(invalidEnd(this.#options.process));
    else if (offset !== undefined && offset > this.#position) this.#options.onError(cutShort(this.#position, offset));
    else this.#options.onEnd(exit);
  }

  fail(error: SandboxError, rollbacks?: number): void {
    if (this.#isAbandoned) return;
    this.#options.onError(this.#options.history.lossAt(rollbacks, this.#position) ?? error);
  }

  #kill(): void {
    this.close();
    const path = { id: this.#link.id, process: this.#options.process };
    // The caller has its error already, and a destroyed sandbox has killed the process.
    this.#link.http.empty("deleteProcess", { path, isRepeatable: true }).catch(() => {});
  }
}

function invalidEnd(process: string): SandboxError {
  return new SandboxError("invalid_answer", {
    message: `the node reported the end of process ${process} without an exit status`,
  });
}

function cutShort(position: number, end: number): SandboxError {
  return new SandboxError("stream_cut", {
    message: `the end of the output is missing: ${position} of ${end} bytes arrived`,
    hint: "attach to the process again from the last offset that arrived",
    details: { position, end },
  });
}
