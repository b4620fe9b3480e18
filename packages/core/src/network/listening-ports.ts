import { type ListeningPort, type PortEvent as PortLine, portEventSchema } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { download } from "../agent/download.ts";
import { jsonLines } from "../agent/json-lines.ts";

/** Each event is a message of its own to a client. */
const UNITS_PER_EVENT = 16;
const WINDOW_BYTES = 64 * 1024;

/** A TCP port on which something in the sandbox listens. */
export type GuestPort = Readonly<ListeningPort>;

export interface PortEvent extends GuestPort {
  readonly kind: "opened" | "closed";
}

export interface WatchPortsOptions {
  /** Ends the loop with an error. */
  readonly signal?: AbortSignal | undefined;
}

interface InternalOptions extends WatchPortsOptions {
  /** Called with 1 when it begins, and with -1 when it has ended. */
  readonly onServing?: ((change: number) => void) | undefined;
}

/** Ports that open and close, beginning with those that are open. Leaving the loop ends it. */
export interface PortWatcher extends AsyncIterableIterator<PortEvent, void, undefined>, AsyncDisposable {}

/** Rejects in its first step with `unimplemented` for an agent that cannot watch ports. */
export function watchPorts(client: AgentClient, { signal, onServing }: InternalOptions = {}): PortWatcher {
  onServing?.(1);
  let isOpen = true;
  const onEnded = () => {
    if (isOpen) onServing?.(-1);
    isOpen = false;
  };
  const unlimited = { signal, windowBytes: WINDOW_BYTES, idleTimeoutMs: Number.POSITIVE_INFINITY };
  const stream = download(client, "port.watch", {}, unlimited);
  const lines = jsonLines(stream, {
    client,
    method: "port.watch",
    schema: portEventSchema,
    unitsPerLine: UNITS_PER_EVENT,
  });
  const events = eventsOf(lines, onEnded);
  return Object.assign(events, {
    async [Symbol.asyncDispose]() {
      // A loop that waits for the next event would keep return() waiting as well.
      await stream.return();
      await events.return();
      onEnded();
    },
  });
}

async function* eventsOf(
  lines: AsyncIterable<PortLine>,
  onEnded: () => void,
): AsyncGenerator<PortEvent, void, undefined> {
  try {
    for await (const line of lines) if (line.kind !== "ready") yield line;
  } finally {
    onEnded();
  }
}
