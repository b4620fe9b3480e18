import type { EventBody, SandboxId } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./socket/connection.ts";
import { ItemStream } from "./socket/item-stream.ts";

export interface EventsOptions extends CallOptions {
  /** Only events after this id; 0, the default, starts with the oldest that the node remembers. */
  readonly after?: number | undefined;
  /** Begin with one `sandbox.state` event for each sandbox of the node instead of past events; then new events follow. */
  readonly replay?: boolean | undefined;
}

/** Past and new events in order, each once, for one loop. */
export interface EventStream extends AsyncIterable<EventBody>, AsyncDisposable {
  /** Resolves when the stream will miss no later event. */
  readonly ready: Promise<void>;
  /** Ends the loop. */
  close(): void;
}

export function openEvents(
  connection: Connection,
  { after = 0, replay = false, sandbox, signal }: EventsOptions & { readonly sandbox?: SandboxId | undefined },
): EventStream {
  return new ItemStream<EventBody>(connection, {
    what: "waiting for events",
    openMessage: (stream, window, last) => {
      // A replay that was cut begins again, because its states have no order to continue in.
      const isReplay = last === undefined ? replay : last.kind === "sandbox.state";
      return { type: "open", stream, kind: "events", after: last?.id ?? after, replay: isReplay, sandbox, window };
    },
    signal,
  });
}
