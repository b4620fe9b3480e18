import {
  type CallId,
  type Clock,
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
import { PacedInput } from "./paced-input.ts";

/** An agent sends none; a few may come from a damaged stream. */
const MAX_MALFORMED_FRAMES = 100;

/** Large, so it is shared. */
let padding: Uint8Array | undefined;

/** An unanswered call, as the connection sees it. */
export interface PendingCall {
  readonly method: string;
  answer(result: Readonly<Record<string, unknown>>): void;
  fail(error: SandboxError): void;
  /** Ends the call on both sides. */
  cancel(error: SandboxError): void;
  /** Memory for the next bytes; undefined for new memory. */
  place(size: number): Uint8Array | undefined;
  data(params: Readonly<Record<string, unknown>>, bytes: Uint8Array): void;
  end(): void;
  credit(bytes: number): void;
}

/** Counts ignored input. */
export interface ConnectionFaults {
  /** Frames that could not be read, and messages about calls that were never made. */
  malformedFrames: number;
  /** Messages about an ended call. */
  strayMessages: number;
}

export interface AgentConnectionOptions {
  readonly clock: Clock;
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
  #input: PacedInput | undefined;
  #lastCallId = 0;
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
    this.#input = new PacedInput({ decoder: this.#decoder, helloId, clock: this.#options.clock });
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

  work(units: number): Promise<void> | undefined {
    return this.#input?.work(units);
  }

  add(id: CallId, call: PendingCall): void {
    if (typeof id === "number") this.#lastCallId = Math.max(this.#lastCallId, id);
    if (this.#error !== undefined) call.fail(this.#error);
    else this.#calls.set(id, call);
  }

  remove(id: CallId): void {
    this.#calls.delete(id);
  }

  /** Ends the open calls of these methods on both sides. */
  cancelAll(methods: readonly string[], error: SandboxError): void {
    for (const call of [...this.#calls.values()]) if (methods.includes(call.method)) call.cancel(error);
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
    this.#input?.stop();
    this.#finish(error);
    this.#channel.close();
  }

  data(chunk: Uint8Array): Promise<void> | undefined {
    return this.#isClosed ? undefined : this.#input?.push(chunk);
  }

  closed(cause?: Error): void {
    if (this.#isClosed) return;
    const drained = this.#input?.drained;
    if (drained !== undefined) {
      // What arrived before the end still counts.
      drained.then(() => this.closed(cause));
      return;
    }
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
    if (message["jsonrpc"] !== "2.0") this.fault();
    else if (message["method"] === undefined) this.#answered(message);
    else this.#notified(message, attachment);
  }

  fault(): void {
    if (this.#isClosed) return;
    this.faults.malformedFrames++;
    if (this.faults.malformedFrames >= MAX_MALFORMED_FRAMES) this.close(tooManyFaults());
  }

  #answered(message: Readonly<Record<string, unknown>>): void {
    const call = this.#calls.get(message["id"] as CallId);
    if (call === undefined) this.#stray(message["id"]);
    else if (message["error"] !== undefined) call.fail(agentError(call.method, message["error"]));
    else if (isObject(message["result"])) call.answer(message["result"]);
    else call.fail(invalidAnswer(call.method, "it has neither result nor error"));
  }

  #notified(message: Readonly<Record<string, unknown>>, attachment: Uint8Array | undefined): void {
    const params = message["params"];
    const call = isObject(params) ? this.#calls.get(params["call"] as CallId) : undefined;
    if (call === undefined) this.#stray(isObject(params) ? params["call"] : undefined);
    else if (message["method"] === "stream.data" && attachment !== undefined) {
      this.#input?.delivered(attachment.length);
      call.data(params as Readonly<Record<string, unknown>>, attachment);
    } else if (message["method"] === "stream.credit" && isCredit(params)) call.credit(params.bytes);
    else if (message["method"] === "stream.end") call.end();
    else this.fault();
  }

  /** An agent may still send messages about a call that has just been canceled, but none about a call never made. */
  #stray(id: unknown): void {
    if (typeof id === "number" && id >= 1 && id <= this.#lastCallId) this.faults.strayMessages++;
    else this.fault();
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

function tooManyFaults(): SandboxError {
  return new SandboxError("agent_malformed", {
    message: `the agent sent ${MAX_MALFORMED_FRAMES} messages that do not follow the protocol, so its channel was closed`,
    details: { faults: MAX_MALFORMED_FRAMES },
  });
}

function requestTooLarge(lineBytes: number): SandboxError {
  return new SandboxError("request_too_large", {
    message: `a request of ${lineBytes} bytes was not sent: the agent reads at most ${MAX_LINE_BYTES}`,
    details: { lineBytes, maxLineBytes: MAX_LINE_BYTES },
  });
}
