import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface KeptEvent {
  readonly id: number;
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly sizeBytes: number;
}

/**
 * The newest messages of one session, for a client that lost its connection in the middle of an answer. Older ones go
 * when there are too many: a client that comes back too late is told so, and asks anew.
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
    // The newest stays however large it is: it is the one that is most likely to get lost.
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
    if (last === undefined) throw new Error(`event ${lastEventId} is not kept any more`);
    for (const { id, streamId, message } of this.#kept.slice(at + 1)) {
      if (streamId === last.streamId && !isPriming(message)) await send(String(id), message);
    }
    return last.streamId;
  }
}

/** What only tells a client from where to go on. */
function isPriming(message: JSONRPCMessage): boolean {
  return !("jsonrpc" in message);
}
