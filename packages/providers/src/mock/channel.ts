import { type Channel, type ChannelReceiver, type Clock, pause } from "@sandpiper/core";
import type { MockFaults } from "./faults.ts";

/** The agent's end of a channel. */
export interface MockPeer {
  receive(chunk: Uint8Array): void;
  disconnected(): void;
}

/** A byte stream in memory. Bytes arrive in a later turn of the event loop, as on a real one. */
export class MockChannel implements Channel {
  readonly #clock: Clock;
  readonly #faults: MockFaults;
  #peer: MockPeer | undefined;
  #receiver: ChannelReceiver | undefined;
  #early: Uint8Array[] = [];
  #isClosed = false;

  constructor(clock: Clock, faults: MockFaults) {
    this.#clock = clock;
    this.#faults = faults;
  }

  /** Without a peer the channel is accepted but silent. */
  connectPeer(peer: MockPeer): void {
    this.#peer = peer;
  }

  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    if (this.#isClosed) throw new Error("the channel is closed");
    for (const piece of pieces) queueMicrotask(() => this.#isClosed || this.#peer?.receive(piece));
    const { slowReaderMs } = this.#faults;
    return slowReaderMs === undefined ? undefined : pause(this.#clock, slowReaderMs);
  }

  open(receiver: ChannelReceiver): void {
    this.#receiver = receiver;
    for (const bytes of this.#early) this.send(bytes);
    this.#early = [];
  }

  /** Sends from the agent to the host. */
  send(bytes: Uint8Array): void {
    if (this.#receiver === undefined) {
      this.#early.push(bytes);
      return;
    }
    const size = this.#faults.chunkBytes ?? bytes.length;
    for (let at = 0; at < bytes.length; at += size) {
      const chunk = bytes.subarray(at, at + size);
      queueMicrotask(() => this.#isClosed || this.#receiver?.data(chunk));
    }
  }

  close(): void {
    this.#end(undefined);
  }

  /** Breaks the channel from the agent's side. */
  drop(message = "the mock dropped the channel"): void {
    this.#end(new Error(message));
  }

  #end(cause: Error | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    queueMicrotask(() => {
      this.#peer?.disconnected();
      this.#receiver?.closed(cause);
    });
  }
}
