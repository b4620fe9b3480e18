import type { Duplex } from "node:stream";
import type { Clock } from "@sandpiper/core";
import type { WebSocket } from "ws";

/** Above this, only answers are sent and data waits. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
/** Above this, nothing is read from the client, so that it cannot request more answers. */
const MAX_ANSWERED_BYTES = 2 * MAX_BUFFERED_BYTES;
const HEARTBEAT_MS = 20_000;

/** Close codes of RFC 6455. */
export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  policy: 1008,
  internal: 1011,
  comeBack: 1012,
} as const;

/** Pings a client at intervals, and terminates the connection if it does not answer. */
export function startHeartbeat(socket: MessageSocket, { clock }: { readonly clock: Clock }): void {
  let stop = () => {};
  const beat = () => {
    if (socket.beat()) stop = clock.schedule(HEARTBEAT_MS, beat);
    else socket.terminate();
  };
  stop = clock.schedule(HEARTBEAT_MS, beat);
  socket.closed.then(() => stop());
}

/** A WebSocket that never buffers more than a few megabytes for a slow client. */
export class MessageSocket {
  /** Resolves when the connection has ended; never rejects. */
  readonly closed: Promise<void>;
  readonly #webSocket: WebSocket;
  readonly #raw: Duplex & { readonly bytesWritten?: number };
  /** Senders that wait for room, in order. */
  readonly #waiting: (() => void)[] = [];
  readonly #awaited: { readonly ping: number; readonly onReceived: () => void }[] = [];
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
    // A "close" follows.
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

  /** Sends an answer at once. Resolves to whether it was handed to the operating system. */
  send(message: object): Promise<boolean> {
    return this.#post(JSON.stringify(message));
  }

  /**
   * Calls `make` when there is room, in the order of the calls, and sends the result unless it is undefined. Resolves
   * when that is done or the connection has closed. Returns undefined if there was room at once.
   */
  deliver(make: () => Uint8Array | string | undefined): Promise<void> | undefined {
    const post = () => {
      const data = make();
      if (data !== undefined) this.#post(data);
    };
    if (this.#hasRoom() && this.#waiting.length === 0) {
      post();
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        if (!this.isClosed) post();
        resolve();
      });
    });
  }

  /** Calls back when the client has received everything sent so far; never if the connection is lost before. */
  whenReceived(onReceived: () => void): void {
    if (this.isClosed) return;
    this.#awaited.push({ ping: this.#ping(), onReceived });
  }

  /** Pings the client; false if there was no sign of life since the last call. */
  beat(): boolean {
    const flushed = (this.#raw.bytesWritten ?? 0) - this.#raw.writableLength;
    // The last ping may wait behind data that a slow client has not read; a client that reads is alive.
    const isAlive = this.#heard || (this.#hadBacklog && flushed > this.#flushedBytes);
    this.#heard = false;
    this.#hadBacklog = this.bufferedBytes > 0;
    this.#flushedBytes = flushed;
    if (isAlive && !this.isClosed) this.#ping();
    return isAlive;
  }

  /** Pauses reading from the client until all holds are disposed. */
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
    // The client's answer to the close must be read.
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

  /** A client may answer only the last of several pings, and answers after it has read everything before it. */
  #answered(ping: number): void {
    this.#heard = true;
    while (this.#awaited[0] !== undefined && this.#awaited[0].ping <= ping) this.#awaited.shift()?.onReceived();
  }

  #hasRoom(): boolean {
    return this.#webSocket.bufferedAmount < MAX_BUFFERED_BYTES;
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
