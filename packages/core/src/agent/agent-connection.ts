import {
  type CallId,
  encodeFrame,
  type Frame,
  FrameDecoder,
  type FrameSink,
  MAX_LINE_BYTES,
  resyncPadding,
  SandboxError,
} from "@sandpiper/protocol";
import type { Channel, ChannelReceiver } from "../channel.ts";
import { agentError, invalidAnswer } from "./agent-error.ts";
import { HelloScanner } from "./hello-scanner.ts";

/** Large, so it is shared. */
let padding: Uint8Array | undefined;

/** An unanswered call, as the connection sees it. */
export interface PendingCall {
  readonly method: string;
  answer(result: Readonly<Record<string, unknown>>): void;
  fail(error: SandboxError): void;
  /** Memory for the next bytes; undefined for new memory. */
  place(size: number): Uint8Array | undefined;
  data(params: Readonly<Record<string, unknown>>, bytes: Uint8Array): void;
  end(): void;
  credit(bytes: number): void;
}

/** Counts ignored input. */
export interface ConnectionFaults {
  /** Frames that could not be read. */
  malformedFrames: number;
  /** Messages about an ended or unknown call. */
  strayMessages: number;
}

export interface AgentConnectionOptions {
  /** Finds the reason when this side did not close the channel. */
  readonly explainClose: (cause: Error | undefined) => Promise<SandboxError>;
}

/** Sends messages on a channel and dispatches answers to their calls. It trusts no input. */
export class AgentConnection implements ChannelReceiver, FrameSink {
  readonly faults: ConnectionFaults = { malformedFrames: 0, strayMessages: 0 };
  readonly #end = Promise.withResolvers<SandboxError>();
  /** Resolves when the connection has ended. */
  readonly closedWith = this.#end.promise;
  readonly #channel: Channel;
  readonly #options: AgentConnectionOptions;
  readonly #decoder = new FrameDecoder(this);
  readonly #calls = new Map<CallId, PendingCall>();
  #scanner: HelloScanner | undefined;
  #outbox: Uint8Array[] = [];
  #isHeld = false;
  #isClosed = false;
  #error: SandboxError | undefined;

  constructor(channel: Channel, options: AgentConnectionOptions) {
    this.#channel = channel;
    this.#options = options;
  }

  /** Starts reading; bytes before the answer to `helloId` belong to an earlier caller. */
  open(helloId: string, needsResync: boolean): void {
    this.#scanner = new HelloScanner(helloId);
    this.#channel.open(this);
    if (!needsResync) return;
    padding ??= resyncPadding();
    this.#post([padding]);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get openCalls(): number {
    return this.#calls.size;
  }

  add(id: CallId, call: PendingCall): void {
    if (this.#error !== undefined) call.fail(this.#error);
    else this.#calls.set(id, call);
  }

  remove(id: CallId): void {
    this.#calls.delete(id);
  }

  /** Messages of one microtask turn are sent in one write. Throws for a message that is longer than the agent reads. */
  send(message: object, attachment?: Uint8Array): void {
    const pieces = encodeFrame(message, attachment);
    const lineBytes = (pieces[0] as Uint8Array).length - 1;
    if (lineBytes > MAX_LINE_BYTES) throw requestTooLarge(lineBytes);
    this.#post(pieces);
  }

  /** Holds later messages, because a checkpoint must not find half a frame on the channel. */
  hold(): void {
    this.flush();
    this.#isHeld = true;
  }

  /** Messages that `send` sends are not held. */
  bypass(send: () => void): void {
    const held = this.#outbox;
    this.#outbox = [];
    this.#isHeld = false;
    send();
    this.hold();
    this.#outbox = held;
  }

  /** Sends the held messages. */
  release(): void {
    this.#isHeld = false;
    this.flush();
  }

  /** Writes waiting messages. Returns a promise when the sender should wait before it sends more. */
  flush(): Promise<void> | undefined {
    if (this.#outbox.length === 0 || this.#isHeld || this.#isClosed) return undefined;
    const pieces = this.#outbox;
    this.#outbox = [];
    try {
      return this.#channel.write(pieces);
    } catch (thrown) {
      this.closed(thrown instanceof Error ? thrown : new Error(String(thrown)));
      return undefined;
    }
  }

  /** Closes the connection; every open call fails with this error. */
  close(error: SandboxError): void {
    this.#isClosed = true;
    this.#finish(error);
    this.#channel.close();
  }

  data(chunk: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#scanner === undefined) {
      this.#decoder.push(chunk);
      return;
    }
    const found = this.#scanner.push(chunk);
    if (found === undefined) return;
    this.#scanner = undefined;
    for (const piece of found) this.#decoder.push(piece);
  }

  closed(cause?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // Open calls wait for the cause, which determines their next step.
    this.#options.explainClose(cause).then((error) => this.#finish(error));
  }

  place(message: Readonly<Record<string, unknown>>, size: number): Uint8Array | undefined {
    const params = message["params"];
    return isObject(params) ? this.#calls.get(params["call"] as CallId)?.place(size) : undefined;
  }

  frame({ message, attachment }: Frame): void {
    if (this.#isClosed) return;
    if (message["jsonrpc"] !== "2.0") this.faults.malformedFrames++;
    else if (message["method"] === undefined) this.#answered(message);
    else this.#notified(message, attachment);
  }

  fault(): void {
    this.faults.malformedFrames++;
  }

  #answered(message: Readonly<Record<string, unknown>>): void {
    const call = this.#calls.get(message["id"] as CallId);
    if (call === undefined) this.faults.strayMessages++;
    else if (message["error"] !== undefined) call.fail(agentError(call.method, message["error"]));
    else if (isObject(message["result"])) call.answer(message["result"]);
    else call.fail(invalidAnswer(call.method, "it has neither result nor error"));
  }

  #notified(message: Readonly<Record<string, unknown>>, attachment: Uint8Array | undefined): void {
    const params = message["params"];
    const call = isObject(params) ? this.#calls.get(params["call"] as CallId) : undefined;
    if (call === undefined) this.faults.strayMessages++;
    else if (message["method"] === "stream.data" && attachment !== undefined) {
      call.data(params as Readonly<Record<string, unknown>>, attachment);
    } else if (message["method"] === "stream.credit" && isCredit(params)) call.credit(params.bytes);
    else if (message["method"] === "stream.end") call.end();
    else this.faults.malformedFrames++;
  }

  #post(pieces: readonly Uint8Array[]): void {
    if (this.#isClosed) return;
    if (this.#outbox.length === 0) queueMicrotask(() => this.flush());
    this.#outbox.push(...pieces);
  }

  #finish(error: SandboxError): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.#outbox = [];
    for (const call of [...this.#calls.values()]) call.fail(error);
    this.#end.resolve(error);
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCredit(params: unknown): params is { readonly bytes: number } {
  const bytes = (params as { readonly bytes: unknown }).bytes;
  return Number.isSafeInteger(bytes) && (bytes as number) > 0;
}

function requestTooLarge(lineBytes: number): SandboxError {
  return new SandboxError("request_too_large", {
    message: `a request of ${lineBytes} bytes was not sent: the agent reads at most ${MAX_LINE_BYTES}`,
    details: { lineBytes, maxLineBytes: MAX_LINE_BYTES },
  });
}
