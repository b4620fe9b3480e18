import { SandboxError } from "@sandpiper/protocol/error";
import type { GuestFiles } from "./guest.ts";

/** The same files, whose reads and writes fail on abort, so that a copy cleans up as after any failure. */
export function interruptibleFiles(files: GuestFiles, signal: AbortSignal): GuestFiles {
  return {
    ...files,
    read: (path) => untilAborted(files.read(path), signal),
    write: (path, content, options) => files.write(path, untilAborted(content, signal), options),
  };
}

async function* untilAborted(source: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const aborted = Promise.withResolvers<never>();
  aborted.promise.catch(() => {});
  const abort = () => aborted.reject(interrupted());
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  const iterator = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted.promise]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", abort);
    // Not awaited: it may never answer.
    iterator.return?.().catch(() => {});
  }
}

function interrupted(): SandboxError {
  return new SandboxError("interrupted", { message: "the copy was interrupted" });
}
