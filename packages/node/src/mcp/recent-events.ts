import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface KeptEvent {
  readonly id: number;
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly sizeBytes: number;
}

/**
 * Keeps the newest messages of one session, for a client that lost its connection during an answer. A client that
 * reconnects too late gets an error and must repeat its request.
 */
export class RecentEvents implements EventStore {
  readonly #limitBytes: number;
  readonly #kept: KeptEvent[] = [];
  #sizeBytes = 0;
  #lastId = 0;

  constructor({ limitBytes }: { readonly limitBytes: number }) {
    this.#limitBytes = limitBytes;
  }

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const id = ++this.#lastId;
    const sizeBytes = JSON.stringify(message).length;
    this.#kept.push({ id, streamId, message, sizeBytes });
    this.#sizeBytes += sizeBytes;
    // The newest message always stays: it is the most likely to get lost.
    while (this.#sizeBytes > this.#limitBytes && this.#kept.length > 1) {
      this.#sizeBytes -= this.#kept.shift()?.sizeBytes ?? 0;
    }
    return String(id);
  }

  async getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return this.#kept.find(({ id }) => String(id) === eventId)?.streamId;
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { readonly send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const at = this.#kept.findIndex(({ id }) => String(id) === lastEventId);
    const last = this.#kept[at];
    if (last === undefined) throw new Error(`event ${lastEventId} is no longer available`);
    for (const { id, streamId, message } of this.#kept.slice(at + 1)) {
      if (streamId === last.streamId && !isPriming(message)) await send(String(id), message);
    }
    return last.streamId;
  }
}

/** A priming message only tells the client an id to resume from. */
function isPriming(message: JSONRPCMessage): boolean {
  return !("jsonrpc" in message);
}
