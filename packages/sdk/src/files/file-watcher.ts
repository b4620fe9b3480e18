import type { FileEventBody } from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import { ItemStream } from "../socket/item-stream.ts";

export interface WatchOptions extends CallOptions {
  /** Includes subdirectories, also those created later. */
  readonly recursive?: boolean | undefined;
}

/** Changes of files, for one loop. An `overflow` event means that some were missed: read the directory again. */
export interface FileWatcher extends AsyncIterable<FileEventBody>, AsyncDisposable {
  /** Ends the loop. */
  close(): void;
}

/** Resolves when the watch is set; later changes are reported, or missed with an `overflow`. */
export async function watchFiles(link: SandboxLink, path: string, options: WatchOptions = {}): Promise<FileWatcher> {
  const { recursive, signal } = options;
  const watcher = new ItemStream<FileEventBody>(link.connection, {
    what: `watching ${path} in sandbox ${link.id}`,
    openMessage: (stream, window) => {
      return { type: "open", stream, kind: "watch", sandbox: link.id, path, recursive, window };
    },
    // A new watch does not report changes from before it was set.
    onReopened: () => [{ kind: "overflow", path: "", to: null }],
    signal,
  });
  await watcher.ready;
  return watcher;
}
