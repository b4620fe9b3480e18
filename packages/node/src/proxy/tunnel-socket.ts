import { Duplex } from "node:stream";
import type { Tunnel } from "@sandpiper/core";

const BUFFER_BYTES = 64 * 1024;

/** A connection into a sandbox with the interface that Node's HTTP client expects of a socket. */
export class TunnelSocket extends Duplex {
  readonly #tunnel: Tunnel;
  readonly #pieces: AsyncIterator<Uint8Array>;
  #isReading = false;

  constructor(tunnel: Tunnel) {
    super({ readableHighWaterMark: BUFFER_BYTES, writableHighWaterMark: BUFFER_BYTES });
    this.#tunnel = tunnel;
    this.#pieces = tunnel.readable[Symbol.asyncIterator]();
    tunnel.closed.catch((error) => this.destroy(error));
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#pieces.next().then(
      ({ done, value }) => {
        this.#isReading = false;
        this.push(done === true ? null : value);
      },
      (error) => this.destroy(error),
    );
  }

  override _write(bytes: Uint8Array, _encoding: string, written: (error?: Error) => void): void {
    this.#tunnel.write(bytes).then(() => written(), written);
  }

  override _final(ended: (error?: Error) => void): void {
    this.#tunnel.end().then(() => ended(), ended);
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    this.#tunnel.close();
    destroyed(error);
  }

  /** The tunnel has no timers and keeps no program from ending. */
  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
