import { Duplex } from "node:stream";
import { type Clock, pause, type Tunnel } from "@sandpiper/core";

export interface TunnelDuplexOptions {
  readonly tunnel: Pick<Tunnel, "write" | "end" | "close">;
  /** What the sandbox sends. */
  readonly outgoing: AsyncIterable<Uint8Array>;
  readonly clock: Clock;
  /** Count the bytes of a direction and return for how long it must pause. */
  readonly countSent: (bytes: number) => number;
  readonly countReceived: (bytes: number) => number;
}

/** A sandbox's end of a connection as a stream of Node.js. */
export class TunnelDuplex extends Duplex {
  readonly #options: TunnelDuplexOptions;
  readonly #iterator: AsyncIterator<Uint8Array>;

  constructor(options: TunnelDuplexOptions) {
    super({ allowHalfOpen: true });
    this.#options = options;
    this.#iterator = options.outgoing[Symbol.asyncIterator]();
  }

  override _read(): void {
    this.#next().then(
      (bytes) => this.push(bytes),
      (thrown) => this.destroy(thrown),
    );
  }

  override _write(bytes: Buffer, _encoding: string, callback: (error?: Error | null) => void): void {
    const { tunnel, clock, countReceived } = this.#options;
    const waitMs = countReceived(bytes.length);
    const written = tunnel.write(bytes);
    (waitMs > 0 ? written.then(() => pause(clock, waitMs)) : written).then(() => callback(), callback);
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#options.tunnel.end().then(() => callback(), callback);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    // After both directions have ended, nothing is dropped.
    if (!this.readableEnded || !this.writableFinished) this.#options.tunnel.close();
    callback(error);
  }

  async #next(): Promise<Uint8Array | null> {
    const { clock, countSent } = this.#options;
    for (;;) {
      const { done, value } = await this.#iterator.next();
      if (done) return null;
      // An empty chunk would look like the end of a turn to readers.
      if (value.length === 0) continue;
      const waitMs = countSent(value.length);
      if (waitMs > 0) await pause(clock, waitMs);
      return value;
    }
  }
}
