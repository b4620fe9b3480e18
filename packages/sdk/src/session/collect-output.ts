import { abortError, DEFAULT_MAX_OUTPUT_BYTES } from "@sandpiper/protocol";
import { createDeferred } from "../deferred.ts";
import type { ExecutionStream, SessionExit, SessionOutput } from "./session-execution.ts";

/** What code printed, and how it ended. */
export interface SessionResult extends SessionExit {
  readonly stdout: string;
  readonly stderr: string;
  /** The output is longer than 64 MiB, or part of it was dropped. */
  readonly truncated: boolean;
}

export interface CollectOptions {
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
  readonly onStdout?: ((text: string) => void) | undefined;
  readonly onStderr?: ((text: string) => void) | undefined;
}

/** Starts an execution and collects its output; kills it if the caller cancels or a callback throws. */
export async function collectOutput(
  start: (onOutput: (output: SessionOutput) => void) => ExecutionStream,
  { what, signal, onStdout, onStderr }: CollectOptions,
): Promise<SessionResult> {
  const interrupted = createDeferred<never>();
  const texts = { stdout: [] as string[], stderr: [] as string[] };
  let room = DEFAULT_MAX_OUTPUT_BYTES;
  let truncated = false;
  const execution = start(({ source, text, dropped }) => {
    if (dropped > 0 || text.length > room) truncated = true;
    texts[source].push(text.slice(0, room));
    room -= Math.min(room, text.length);
    try {
      (source === "stdout" ? onStdout : onStderr)?.(text);
    } catch (thrown) {
      interrupt(thrown);
    }
  });
  const interrupt = (thrown: unknown) => {
    execution.abandon();
    interrupted.reject(thrown);
  };
  const abort = () => interrupt(abortError(signal as AbortSignal, what));
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const { exitCode, message } = await Promise.race([execution.wait(), interrupted.promise]);
    return { stdout: texts.stdout.join(""), stderr: texts.stderr.join(""), exitCode, message, truncated };
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}
