import { type Clock, systemClock } from "@sandpiper/core";
import type { Call } from "./call.ts";
import { streamResponse } from "./stream-response.ts";

/** Shorter than the idle timeouts of proxies and browsers. */
const HEARTBEAT_MS = 15_000;

export interface SentEvent {
  readonly id?: number | undefined;
  readonly kind: string;
  readonly data: object;
}

/** Streams events as they happen, with a heartbeat. */
export function eventResponse(
  call: Call,
  source: (signal: AbortSignal) => AsyncIterable<SentEvent>,
): Promise<Response> {
  const { clock = systemClock } = call.deps;
  return streamResponse(call, (signal) => lines(source(signal), clock), {
    beginsAtOnce: true,
    headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" },
  });
}

async function* lines(source: AsyncIterable<SentEvent>, clock: Clock): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  const iterator = source[Symbol.asyncIterator]();
  try {
    // Tells the reader at once that the stream is open.
    yield encoder.encode(":\n\n");
    let pending = iterator.next();
    for (;;) {
      const next = await orHeartbeat(pending, clock);
      if (next === undefined) yield encoder.encode(":\n\n");
      else if (next.done) return;
      else {
        yield encoder.encode(textOf(next.value));
        pending = iterator.next();
      }
    }
  } finally {
    iterator.return?.().catch(() => {});
  }
}

async function orHeartbeat<T>(pending: Promise<T>, clock: Clock): Promise<T | undefined> {
  const heartbeat = Promise.withResolvers<undefined>();
  const stop = clock.schedule(HEARTBEAT_MS, () => heartbeat.resolve(undefined));
  try {
    return await Promise.race([pending, heartbeat.promise]);
  } finally {
    stop();
  }
}

function textOf({ id, kind, data }: SentEvent): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;
}
