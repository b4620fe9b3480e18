import { type WatchEvent, watchEventSchema } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { invalidAnswer } from "../agent/agent-error.ts";
import { download } from "../agent/download.ts";
import { jsonLines } from "../agent/json-lines.ts";

/** Each event is a message of its own to a client: a flood of them took a fifth of a core at half this price. */
const UNITS_PER_EVENT = 16;

export interface FileEvent {
  /** `overflow` means that changes were missed: read the directory again. */
  readonly kind: Exclude<WatchEvent["kind"], "ready">;
  /** Relative to the watched directory; empty for the watched path itself. */
  readonly path: string;
  /** rename only: the new path. */
  readonly to?: string | undefined;
}

export interface WatchOptions {
  readonly recursive?: boolean | undefined;
  /** Ends the loop with an error. */
  readonly signal?: AbortSignal | undefined;
}

/** Changes below a path since the watcher was created. Leaving the loop ends it. */
export interface FileWatcher extends AsyncIterableIterator<FileEvent, void, undefined>, AsyncDisposable {}

/** Resolves when the watch is set and will miss no later change. */
export async function watchFiles(client: AgentClient, path: string, options: WatchOptions = {}): Promise<FileWatcher> {
  const { recursive, signal } = options;
  const unlimited = { signal, idleTimeoutMs: Number.POSITIVE_INFINITY };
  const stream = download(client, "file.watch", { path, recursive }, unlimited);
  const events = jsonLines(stream, {
    client,
    method: "file.watch",
    schema: watchEventSchema,
    unitsPerLine: UNITS_PER_EVENT,
  });
  const stopTimer = client.clock.schedule(client.rpcTimeoutMs, () =>
    stream.cancel(client.timeoutError("file.watch", client.rpcTimeoutMs)),
  );
  const first = await events.next().finally(stopTimer);
  if (first.done || first.value.kind !== "ready") {
    await events.return();
    throw invalidAnswer("file.watch", "its first line is not ready");
  }
  return Object.assign(events as AsyncGenerator<FileEvent, void, undefined>, {
    async [Symbol.asyncDispose]() {
      // A loop that waits for the next event would keep return() waiting as well.
      await stream.return();
      await events.return();
    },
  });
}
