import type { FileEventBody } from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import { ItemStream } from "../socket/item-stream.ts";

export interface WatchOptions extends CallOptions {
  /** Also everything below; directories that are made later included. */
  readonly recursive?: boolean | undefined;
}

/** Changes of files, for one loop. An `overflow` event says that some were missed: look again. */
export interface FileWatcher extends AsyncIterable<FileEventBody>, AsyncDisposable {
  /** Ends its loop. */
  close(): void;
}

/** Resolves when the watch is set: nothing that happens afterwards is missed without an `overflow`. */
export async function watchFiles(link: SandboxLink, path: string, options: WatchOptions = {}): Promise<FileWatcher> {
  const { recursive, signal } = options;
  const watcher = new ItemStream<FileEventBody>(link.connection, {
    what: `watching ${path} in sandbox ${link.id}`,
    openMessage: (stream, window) => {
      return { type: "open", stream, kind: "watch", sandbox: link.id, path, recursive, window };
    },
    // A watch begins when it is set; what changed while there was none is not told.
    onReopened: () => [{ kind: "overflow", path: "", to: null }],
    signal,
  });
  await watcher.ready;
  return watcher;
}
