import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";

/** Beyond this no data is added, only answers. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
/** Beyond this the client is not read from, so that it asks for no more answers. */
const MAX_ANSWERED_BYTES = 2 * MAX_BUFFERED_BYTES;

/** Why a connection ends; codes of RFC 6455. */
export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  policy: 1008,
  internal: 1011,
  comeBack: 1012,
} as const;

/** A WebSocket that never holds more than a few megabytes for a client that reads slowly, or not at all. */
export class MessageSocket {
  /** Resolves when the connection has ended; never rejects. */
  readonly closed: Promise<void>;
  readonly #webSocket: WebSocket;
  readonly #raw: Duplex & { readonly bytesWritten?: number };
  /** Senders of data, each called when it is its turn. */
  readonly #waiting: (() => void)[] = [];
  readonly #awaited: { readonly ping: number; readonly told: () => void }[] = [];
  #pings = 0;
  #holds = 0;
  #isClosed = false;
  #heard = true;
  #hadBacklog = false;
  #flushedBytes = 0;

  constructor(webSocket: WebSocket, raw: Duplex) {
    this.#webSocket = webSocket;
    this.#raw = raw;
    webSocket.on("pong", (data) => this.#answered(Number(data.toString("latin1"))));
    // A close follows, with the reason for it.
    webSocket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      webSocket.once("close", () => {
        this.#isClosed = true;
        for (const send of this.#waiting.splice(0)) send();
        resolve();
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#webSocket.readyState !== this.#webSocket.OPEN;
  }

  get bufferedBytes(): number {
    return this.#webSocket.bufferedAmount;
  }

  onMessage(receive: (data: Buffer, isBinary: boolean) => void): void {
    this.#webSocket.on("message", (data, isBinary) => {
      this.#heard = true;
      if (!this.isClosed) receive(data as Buffer, isBinary);
    });
  }

  /** Sends an answer at once. Resolves with whether it has left this process. */
  send(message: object): Promise<boolean> {
    return this.#post(JSON.stringify(message));
  }

  /**
   * Calls `make` when there is room and it is its turn, and sends what it answers with; undefined sends nothing. Resolves
   * when that is done or the connection has closed.
   */
  deliver(make: () => Uint8Array | string | undefined): Promise<void> | undefined {
    if (this.#hasRoom() && this.#waiting.length === 0) {
      this.#postMade(make);
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        if (!this.isClosed) this.#postMade(make);
        resolve();
      });
    });
  }

  /** Calls back when the client has received everything that was sent before; never when the connection is lost. */
  whenReceived(told: () => void): void {
    if (this.isClosed) return;
    this.#awaited.push({ ping: this.#ping(), told });
  }

  /** Pings; false when nothing at all has passed since the last time. */
  beat(): boolean {
    const flushed = (this.#raw.bytesWritten ?? 0) - this.#raw.writableLength;
    // The last ping waits behind what a slow client has yet to read, and a client that reads is there.
    const isAlive = this.#heard || (this.#hadBacklog && flushed > this.#flushedBytes);
    this.#heard = false;
    this.#hadBacklog = this.bufferedBytes > 0;
    this.#flushedBytes = flushed;
    if (isAlive && !this.isClosed) this.#ping();
    return isAlive;
  }

  /** Nothing is read from the client until all of these are disposed. */
  holdBack(): Disposable {
    this.#holds++;
    this.#webSocket.pause();
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#holds--;
        isHeld = false;
        this.#drained();
      },
    };
  }

  close(code: number, reason: string): void {
    // A client that is not read from could not answer the close.
    this.#webSocket.resume();
    this.#webSocket.close(code, reason);
  }

  terminate(): void {
    this.#webSocket.terminate();
  }

  #ping(): number {
    this.#webSocket.ping(String(++this.#pings));
    return this.#pings;
  }

  /** A client may answer only the last of several pings, and does so in the order of all that is sent to it. */
  #answered(ping: number): void {
    this.#heard = true;
    while (this.#awaited[0] !== undefined && this.#awaited[0].ping <= ping) this.#awaited.shift()?.told();
  }

  #hasRoom(): boolean {
    return this.#webSocket.bufferedAmount < MAX_BUFFERED_BYTES;
  }

  #postMade(make: () => Uint8Array | string | undefined): void {
    const made = make();
    if (made !== undefined) this.#post(made);
  }

  #post(data: Uint8Array | string): Promise<boolean> {
    if (this.isClosed) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#webSocket.send(data, (error) => {
        resolve(error === undefined || error === null);
        this.#drained();
      });
      if (this.#webSocket.bufferedAmount > MAX_ANSWERED_BYTES) this.#webSocket.pause();
    });
  }

  #drained(): void {
    while (this.#waiting.length > 0 && (this.isClosed || this.#hasRoom())) this.#waiting.shift()?.();
    if (this.#webSocket.isPaused && this.#holds === 0 && this.#hasRoom()) this.#webSocket.resume();
  }
}
