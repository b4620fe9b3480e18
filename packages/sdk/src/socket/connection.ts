import {
  decodeDataFrame,
  encodeDataFrame,
  errorFromBody,
  SandboxError,
  type ServerMessage,
  SOCKET_PROTOCOL,
} from "@sandpiper/protocol";
import { backOffMs } from "../back-off.ts";
import type { ClientSpec } from "../client-options.ts";
import type { CookieJar } from "../http/cookie-jar.ts";
import { isMoving, isPaused } from "../moving.ts";
import type { Timing } from "../timing.ts";
import { unreachable } from "../unreachable.ts";
import { Heartbeat } from "./heartbeat.ts";
import { parseServerMessage } from "./server-message.ts";
import type { SocketStream, StreamMessage, StreamPort } from "./socket-stream.ts";
import { openWebSocket, type WebSocketEvent, type WebSocketLike } from "./web-socket.ts";

/** An idle connection would keep a program from ending. */
const IDLE_MS = 1_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** A caller should soon learn that no node runs. */
const FIRST_CONNECT_TIMEOUT_MS = 3_000;
/** Below the node's limit for one connection; more streams wait. */
const MAX_STREAMS = 1000;
/** The close code of a node whose sandbox has moved or that stops: the client reconnects. */
const SERVICE_RESTART = 1012;
/** After this many immediate reconnects in a row, the client backs off. */
const RESTART_PAUSE_MS = 1_000;
/** The kinds of streams that wait for a paused sandbox after a reconnect. */
const CONTINUABLE: readonly string[] = ["process", "stdin", "watch"];

interface Entry {
  readonly stream: SocketStream;
  /** Each number is used once, so a stream that is opened again on the same connection gets another. */
  number: number;
  /** Whether it is open on this connection. */
  isSent: boolean;
  wasSent: boolean;
  /** Whether it was open on any connection. */
  wasOpened: boolean;
  /** Its sandbox is moving to another node, and it is opened again later. */
  postponed: { readonly sinceMs: number; readonly attempt: number; cancel: (() => void) | undefined } | undefined;
}

export interface ConnectionOptions {
  readonly cookies: CookieJar;
  /** Finds out why the connection failed, because a WebSocket does not say; undefined if a retry may succeed. */
  readonly explain: () => Promise<SandboxError | undefined>;
}

/**
 * The one WebSocket of a client, open while streams need it. After a loss the client reconnects and reopens every stream
 * at its position.
 */
export class Connection {
  readonly #spec: ClientSpec;
  readonly #options: ConnectionOptions;
  readonly #streams = new Map<number, Entry>();
  #sentStreams = 0;
  #nextStream = 0;
  #socket: WebSocketLike | undefined;
  #isOpen = false;
  #hasBeenOpen = false;
  #attempt = 0;
  #downSinceMs: number | undefined;
  #restartedAtMs = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;
  #cancelSoon: (() => void) | undefined;
  #heartbeat: Heartbeat | undefined;

  constructor(spec: ClientSpec, options: ConnectionOptions) {
    this.#spec = spec;
    this.#options = options;
  }

  get timing(): Timing {
    return this.#spec.timing;
  }

  /** With `isUrgent` false it is sent after the current messages have been handled. */
  open(stream: SocketStream, { isUrgent = true }: { readonly isUrgent?: boolean } = {}): StreamPort {
    const number = this.#nextStream++;
    const entry: Entry = { stream, number, isSent: false, wasSent: false, wasOpened: false, postponed: undefined };
    this.#streams.set(number, entry);
    if (this.#isOpen && isUrgent) this.#sendOpen(entry);
    else if (this.#isOpen) this.#sendSoon();
    else if (this.#socket === undefined && this.#downSinceMs === undefined) this.#connect();
    return {
      get wasSent() {
        return entry.wasSent;
      },
      send: (message) => this.#send(entry, message),
      sendInput: (offset, bytes) => {
        if (!this.#isOpen || !entry.isSent || !this.#streams.has(entry.number)) return;
        this.#socket?.send(encodeDataFrame({ stream: entry.number, source: "stdin", offset, bytes }));
      },
      close: () => {
        if (!this.#streams.has(entry.number)) return;
        this.#send(entry, { type: "close" });
        this.#remove(entry);
      },
    };
  }

  /** Closes an unused connection; the next stream opens it again. */
  closeIfIdle(): void {
    if (this.#streams.size === 0) this.#drop();
  }

  /** Fails every stream; the next stream opens the connection again. */
  close(): void {
    this.#failAll(new SandboxError("client_closed", { message: "the client was closed during the operation" }));
    this.#drop();
  }

  #connect(): void {
    const { baseUrl, apiKey, webSocket } = this.#spec;
    const protocols = [SOCKET_PROTOCOL, ...(apiKey === undefined ? [] : [`bearer.${apiKey}`])];
    let socket: WebSocketLike;
    try {
      const url = `${baseUrl.replace(/^http/, "ws")}/v1/socket`;
      socket = openWebSocket(webSocket, { url, protocols, cookie: this.#options.cookies.header });
    } catch (thrown) {
      const message = `cannot open a WebSocket to ${baseUrl}: ${thrown instanceof Error ? thrown.message : thrown}`;
      const error = SandboxError.is(thrown) ? thrown : new SandboxError("invalid_url", { message, cause: thrown });
      // Deferred, because the caller does not hold the stream yet.
      queueMicrotask(() => this.#failAll(error));
      return;
    }
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    // An error is always followed by a close, and a closed socket sends no more events.
    const ifCurrent = (work: (event: WebSocketEvent) => void) => (event: WebSocketEvent) => {
      if (this.#socket === socket) work(event);
    };
    socket.addEventListener("open", ifCurrent(this.#opened.bind(this)));
    socket.addEventListener(
      "message",
      ifCurrent(({ data }) => this.#receive(data)),
    );
    socket.addEventListener("error", () => {});
    socket.addEventListener(
      "close",
      ifCurrent(({ code }) => this.#lost(code)),
    );
    this.#setTimer(CONNECT_TIMEOUT_MS, () => this.#giveUp());
  }

  #opened(): void {
    this.#clearTimer();
    this.#isOpen = true;
    this.#hasBeenOpen = true;
    this.#heartbeat = new Heartbeat({
      timing: this.#spec.timing,
      ask: () => this.#askForLife(),
      onDead: () => this.#giveUp(),
    });
    if (this.#streams.size === 0) this.#closeLater();
    this.#sentStreams = 0;
    for (const entry of this.#streams.values()) entry.isSent = false;
    this.#sendWaiting();
  }

  #receive(data: unknown): void {
    // Reset only now: a connection that opens and breaks immediately must not be retried without a pause.
    this.#attempt = 0;
    this.#downSinceMs = undefined;
    this.#heartbeat?.heard();
    if (typeof data !== "string") {
      const frame = decodeDataFrame(new Uint8Array(data as ArrayBuffer));
      if (frame !== undefined) this.#streams.get(frame.stream)?.stream.data?.(frame);
      return;
    }
    const message = parseServerMessage(data);
    if (message !== undefined) this.#dispatch(message);
  }

  #dispatch(message: ServerMessage): void {
    if (message.type === "error" && message.stream === undefined) {
      const error = errorFromBody(message.error, { status: 500 });
      if (error.code !== "unavailable") this.#failAll(error);
      return;
    }
    const entry = this.#streams.get(message.stream as number);
    if (entry === undefined) return;
    const { stream } = entry;
    if (message.type === "opened") {
      entry.postponed = undefined;
      entry.wasOpened = true;
      stream.opened(message);
    } else if (message.type === "item") stream.item?.(message.item);
    else if (message.type === "ack") stream.ack?.(message.offset);
    else if (message.type === "finished") stream.finished?.();
    else if (message.type === "end") {
      this.#remove(entry);
      stream.end(message);
    } else if (message.type === "error") {
      const error = errorFromBody(message.error, { status: 500 });
      const isWorthWaiting = isMoving(error) || (isPaused(error) && entry.wasOpened);
      if (isWorthWaiting && this.#postpone(entry)) return;
      this.#remove(entry);
      stream.fail(error, message.rollbacks);
    }
  }

  /** Reconnects after a pause; false after the retry time. */
  #postpone(entry: Entry): boolean {
    const { timing, reconnectTimeoutMs } = this.#spec;
    const { sinceMs, attempt } = entry.postponed ?? { sinceMs: timing.monotonicMs(), attempt: 0 };
    if (timing.monotonicMs() - sinceMs >= reconnectTimeoutMs) return false;
    const postponed: NonNullable<Entry["postponed"]> = { sinceMs, attempt: attempt + 1, cancel: undefined };
    postponed.cancel = timing.schedule(backOffMs(attempt, timing.random), () => {
      postponed.cancel = undefined;
      if (this.#isOpen) this.#sendOpen(entry);
    });
    this.#withdraw(entry);
    entry.number = this.#nextStream++;
    entry.isSent = false;
    entry.postponed = postponed;
    this.#streams.set(entry.number, entry);
    return true;
  }

  /** Its close event may come much later, or never. */
  #giveUp(): void {
    const socket = this.#socket;
    this.#lost();
    socket?.close();
  }

  #lost(code?: number): void {
    const { baseUrl, timing, reconnectTimeoutMs } = this.#spec;
    const wasOpen = this.#isOpen;
    this.#release();
    this.#failUnresumable();
    if (this.#streams.size === 0) {
      this.#downSinceMs = undefined;
      return;
    }
    this.#downSinceMs ??= timing.monotonicMs();
    const limitMs = this.#hasBeenOpen ? reconnectTimeoutMs : Math.min(reconnectTimeoutMs, FIRST_CONNECT_TIMEOUT_MS);
    if (timing.monotonicMs() - this.#downSinceMs >= limitMs) {
      this.#failAll(unreachable(baseUrl, undefined));
      return;
    }
    // The first attempt after a loss counts as the second, because a key may have been revoked meanwhile.
    if (!wasOpen && this.#attempt <= 1) this.#askWhy();
    const pauseMs = this.#isRestart(code) ? 0 : backOffMs(this.#attempt, timing.random);
    this.#attempt++;
    this.#setTimer(pauseMs, () => this.#connect());
  }

  /** Whether to reconnect immediately. */
  #isRestart(code: number | undefined): boolean {
    const nowMs = this.#spec.timing.monotonicMs();
    if (code !== SERVICE_RESTART || this.#attempt > 0 || nowMs - this.#restartedAtMs < RESTART_PAUSE_MS) return false;
    this.#restartedAtMs = nowMs;
    return true;
  }

  #failUnresumable(): void {
    for (const [number, { stream, wasOpened }] of [...this.#streams]) {
      if (!wasOpened || !stream.endsWithConnection) continue;
      this.#streams.delete(number);
      stream.fail(unreachable(this.#spec.baseUrl, undefined));
    }
  }

  #askWhy(): void {
    this.#options.explain().then(
      (error) => {
        if (error !== undefined && !this.#isOpen) this.#failAll(error);
      },
      () => {},
    );
  }

  #failAll(error: SandboxError): void {
    const entries = [...this.#streams.values()];
    this.#streams.clear();
    this.#drop();
    for (const { postponed, stream } of entries) {
      postponed?.cancel?.();
      stream.fail(error);
    }
  }

  #drop(): void {
    const socket = this.#socket;
    this.#release();
    this.#attempt = 0;
    this.#downSinceMs = undefined;
    socket?.close();
  }

  #release(): void {
    this.#clearTimer();
    this.#cancelSoon?.();
    this.#cancelSoon = undefined;
    this.#heartbeat?.stop();
    this.#heartbeat = undefined;
    this.#socket = undefined;
    this.#isOpen = false;
  }

  /** Opens a stream of events only to get an answer, and closes it with the first one. */
  #askForLife(): void {
    const port = this.open({
      openMessage: (stream) => ({ type: "open", stream, kind: "events", after: Number.MAX_SAFE_INTEGER, window: 1 }),
      opened: () => port.close(),
      end() {},
      fail() {},
    });
  }

  #sendOpen(entry: Entry): void {
    if (this.#sentStreams >= MAX_STREAMS) return;
    this.#sentStreams++;
    entry.isSent = true;
    entry.wasSent = true;
    const message = entry.stream.openMessage(entry.number);
    const isContinued = entry.wasOpened && CONTINUABLE.includes(message.kind);
    this.#socket?.send(JSON.stringify(isContinued ? { ...message, continued: true } : message));
  }

  #sendSoon(): void {
    this.#cancelSoon ??= this.#spec.timing.schedule(0, () => {
      this.#cancelSoon = undefined;
      if (this.#isOpen) this.#sendWaiting();
    });
  }

  #sendWaiting(): void {
    for (const entry of this.#streams.values()) if (isDue(entry)) this.#sendOpen(entry);
  }

  #send(entry: Entry, message: StreamMessage | { type: "close" }): void {
    if (!this.#isOpen || !entry.isSent || !this.#streams.has(entry.number)) return;
    this.#socket?.send(JSON.stringify({ ...message, stream: entry.number }));
  }

  #withdraw(entry: Entry): void {
    this.#streams.delete(entry.number);
    if (entry.isSent && this.#isOpen && this.#sentStreams-- === MAX_STREAMS) this.#sendNext();
  }

  #remove(entry: Entry): void {
    entry.postponed?.cancel?.();
    this.#withdraw(entry);
    if (this.#streams.size > 0) return;
    if (this.#isOpen) this.#closeLater();
    else if (this.#socket === undefined) this.#drop();
  }

  /** Opens a waiting stream after another has closed. */
  #sendNext(): void {
    for (const entry of this.#streams.values()) {
      if (!isDue(entry)) continue;
      this.#sendOpen(entry);
      return;
    }
  }

  #closeLater(): void {
    this.#setTimer(IDLE_MS, () => this.closeIfIdle());
  }

  /** There is one timer at a time: to connect, to reconnect, or to close. */
  #setTimer(delayMs: number, callback: () => void): void {
    this.#clearTimer();
    this.#cancelTimer = this.#spec.timing.schedule(delayMs, () => {
      this.#cancelTimer = undefined;
      callback();
    });
  }

  #clearTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}

function isDue({ isSent, postponed }: Entry): boolean {
  return !isSent && postponed?.cancel === undefined;
}
