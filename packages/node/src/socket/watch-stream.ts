import type { ClientMessage } from "@sandpiper/protocol";
import type { StreamEnd, StreamSubject } from "./socket-stream.ts";

/** Sends the changes below a path of a sandbox. */
export async function runWatchStream(
  { stream, live }: StreamSubject,
  { path, recursive }: Extract<ClientMessage, { kind: "watch" }>,
): Promise<StreamEnd | undefined> {
  using _ = live.countWatch();
  await using watcher = await live.files.watch(path, { recursive, signal: stream.signal });
  stream.opened();
  for await (const { kind, path: changed, to } of watcher) {
    await stream.item({ kind, path: changed, to: to ?? null });
    if (stream.signal.aborted) return undefined;
  }
  return {};
}
