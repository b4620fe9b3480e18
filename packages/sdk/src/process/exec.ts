import {
  abortError,
  commandBody,
  type ExecOptions,
  ExecOutput,
  type ExecResult,
  type Program,
} from "@sandpiper/protocol";
import { createDeferred } from "../deferred.ts";
import { randomId } from "../random-id.ts";
import { HistoryMark } from "../rollback/history-mark.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import type { OpenMessage, SocketStream } from "../socket/socket-stream.ts";
import { ProcessStream } from "./process-stream.ts";
import { StdinStream } from "./stdin-stream.ts";

/** Runs a program to its end: one message starts it, and its output and exit come back on the same stream. */
export async function exec(link: SandboxLink, program: Program, options: ExecOptions = {}): Promise<ExecResult> {
  const { signal } = options;
  const what = `exec in sandbox ${link.id}`;
  if (signal?.aborted) throw abortError(signal, what);
  const { promise, resolve, reject } = createDeferred<ExecResult>();
  const output = new ExecOutput(options);
  const process = randomId();
  const input = typeof options.stdin === "string" ? new TextEncoder().encode(options.stdin) : options.stdin;
  const hasInput = input !== undefined && input.length > 0;
  const history = new HistoryMark(link);
  let stdin: StdinStream | undefined;

  const stream = new ProcessStream(link, {
    process,
    spawn: { process, ...commandBody(program, options), stdin: hasInput },
    offset: 0,
    history,
    onOpened() {
      if (!hasInput) return;
      stdin = new StdinStream(link, { process, history });
      // A command may end without reading its input.
      stdin.write(input).catch(() => {});
      stdin.finish().catch(() => {});
    },
    onChunk(chunk) {
      stream.take(chunk.bytes.length);
      try {
        output.add(chunk);
      } catch (thrown) {
        interrupt(thrown);
      }
    },
    onEnd(exit) {
      forgetProcess(link, process);
      resolve(output.result(exit));
    },
    onError: reject,
  });
  const interrupt = (thrown: unknown) => {
    stream.abandon();
    reject(thrown);
  };
  const abort = () => interrupt(abortError(signal as AbortSignal, what));
  signal?.addEventListener("abort", abort, { once: true });
  try {
    return await promise;
  } finally {
    signal?.removeEventListener("abort", abort);
    stdin?.close();
  }
}

/**
 * Makes the node forget a process that has ended. It uses a separate stream, opened after all output has arrived: if the
 * first stream asked for it, a connection lost with the last message could not be resumed.
 */
function forgetProcess(link: SandboxLink, process: string): void {
  const stream: SocketStream = {
    openMessage(number): OpenMessage {
      return { type: "open", stream: number, kind: "forget", sandbox: link.id, process };
    },
    opened() {},
    end: () => link.forgotten.delete(process),
    fail: () => link.forgotten.delete(process),
  };
  link.forgotten.add(process);
  link.connection.open(stream, { isUrgent: false });
}
