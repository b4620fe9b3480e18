import {
  abortError,
  type CommandOptions,
  commandBody,
  type Program,
  type StartProcessBody,
  type TerminalSize,
} from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import { createDeferred } from "../deferred.ts";
import { randomId } from "../random-id.ts";
import { HistoryMark } from "../rollback/history-mark.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import { OutputReader } from "./output-reader.ts";
import { Process } from "./process.ts";
import { ProcessEnding } from "./process-ending.ts";

export interface StartOptions extends CommandOptions, CallOptions {
  /** Its id; random by default. With the id of an existing process, the call attaches to it. */
  readonly id?: string | undefined;
  /** If true, `write` sends its standard input, which is empty otherwise. A terminal always has input. */
  readonly stdin?: boolean | undefined;
  /** Runs the command on a terminal of this size. */
  readonly pty?: TerminalSize | undefined;
  /** How much output the node keeps for later readers. */
  readonly journalBytes?: number | undefined;
}

export interface AttachOptions extends CallOptions {
  /** The offset to read its output from; the default is 0, the start. */
  readonly offset?: number | undefined;
}

/** Resolves when the process runs. An abort before that kills it. */
export function startProcess(
  link: SandboxLink,
  program: Program | undefined,
  options: StartOptions = {},
): Promise<Process> {
  const { stdin, pty, journalBytes, signal, id = randomId() } = options;
  const spawn: StartProcessBody = {
    process: id,
    ...commandBody(program, options),
    stdin,
    pty: pty && { rows: pty.rows, cols: pty.cols },
    journalBytes,
  };
  return openProcess(link, { id, spawn, offset: 0, signal });
}

export function attachProcess(link: SandboxLink, id: string, options: AttachOptions = {}): Promise<Process> {
  return openProcess(link, { id, spawn: undefined, offset: options.offset ?? 0, signal: options.signal });
}

interface OpenOptions extends CallOptions {
  readonly id: string;
  readonly spawn: StartProcessBody | undefined;
  readonly offset: number;
}

async function openProcess(link: SandboxLink, { id, spawn, offset, signal }: OpenOptions): Promise<Process> {
  const what = `${spawn === undefined ? "attaching to" : "starting"} process ${id} in sandbox ${link.id}`;
  if (signal?.aborted) throw abortError(signal, what);
  const { promise, resolve, reject } = createDeferred<number>();
  const ending = new ProcessEnding(link, id);
  const history = new HistoryMark(link);
  const reader = new OutputReader(link, {
    process: id,
    spawn,
    offset,
    ending,
    history,
    onOpened: (pid) => resolve(pid ?? 0),
    onError: reject,
  });
  const abort = () => {
    if (spawn === undefined) reader.close();
    else reader.abandon();
    reject(abortError(signal as AbortSignal, what));
  };
  signal?.addEventListener("abort", abort, { once: true });
  try {
    return new Process(link, { id, pid: await promise, offset, ending, history, reader });
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}
