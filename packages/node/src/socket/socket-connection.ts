import { SandboxError, systemClock } from "@sandpiper/core";
import {
  type ClientMessage,
  decodeDataFrame,
  errorBody,
  type OperationId,
  routes,
  type ServerMessage,
} from "@sandpiper/protocol";
import type { Logger } from "pino";
import type { Principal } from "../auth/principal.ts";
import { movedOn } from "../cluster/peer-errors.ts";
import { SocketRelay } from "../forward/socket-relay.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { runEventStream } from "./event-stream.ts";
import { closeCodes, type MessageSocket } from "./message-socket.ts";
import { runProcessStream } from "./process-stream.ts";
import { readClientMessage, UnreadableMessage } from "./read-client-message.ts";
import { SandboxHolds } from "./sandbox-holds.ts";
import type { SocketAudit } from "./socket-audit.ts";
import type { SocketDependencies } from "./socket-dependencies.ts";
import { SocketStream, type StreamEnd } from "./socket-stream.ts";
import { runStdinStream } from "./stdin-stream.ts";
import { runWatchStream } from "./watch-stream.ts";

const MAX_STREAMS = 1024;
/** A client that keeps sending what cannot be understood is broken or means harm. */
const MAX_MALFORMED = 32;

type OpenMessage = Extract<ClientMessage, { type: "open" }>;

export interface SocketConnectionOptions {
  readonly socket: MessageSocket;
  readonly principal: Principal;
  readonly dependencies: SocketDependencies;
  readonly logger: Logger;
  readonly requestId: string;
  readonly audit: SocketAudit;
  /** With which streams about sandboxes of other nodes are passed on; undefined: none is. */
  readonly credential?: string | undefined;
}

/** One client of `/v1/socket` with its streams. */
export class SocketConnection {
  readonly #options: SocketConnectionOptions;
  readonly #streams = new Map<number, SocketStream>();
  readonly #holds = new SandboxHolds();
  readonly #relay: SocketRelay | undefined;
  #malformed = 0;

  constructor(options: SocketConnectionOptions) {
    this.#options = options;
    const { socket } = options;
    this.#relay = this.#openRelay();
    socket.onMessage((data, isBinary) => (isBinary ? this.#data(data) : this.#message(data.toString())));
    socket.closed.then(() => {
      for (const stream of this.#streams.values()) stream.end();
      this.#streams.clear();
    });
  }

  #openRelay(): SocketRelay | undefined {
    const { socket, principal, requestId, credential, dependencies } = this.#options;
    const { cluster, clock = systemClock } = dependencies;
    if (cluster === undefined || credential === undefined) return undefined;
    const serveHere = (data: string | Uint8Array) => {
      if (typeof data === "string") this.#message(data, { isForThisNode: true });
      else this.#data(data, { isForThisNode: true });
    };
    return new SocketRelay({ ...cluster, client: socket, principal, credential, requestId, clock, serveHere });
  }

  #message(text: string, { isForThisNode = false } = {}): void {
    const message = readClientMessage(text);
    if (message instanceof UnreadableMessage) {
      this.#refuse(message);
      return;
    }
    if (!isForThisNode && this.#relay?.message(message, text)) return;
    const stream = this.#streams.get(message.stream);
    // Messages about a stream that has just ended cross its end on the way.
    if (message.type === "open") this.#open(message, stream);
    else if (message.type === "credit") stream?.credit.add(message.amount);
    else if (message.type === "finish") this.#input(stream, (queue) => queue.finish(message.offset));
    else if (stream !== undefined) this.#remove(stream);
  }

  #data(bytes: Uint8Array, { isForThisNode = false } = {}): void {
    const frame = decodeDataFrame(bytes);
    if (frame === undefined || frame.source !== "stdin") {
      this.#refuse(new UnreadableMessage("a binary frame that is no input", frame?.stream));
      return;
    }
    if (!isForThisNode && this.#relay?.data(frame.stream, bytes)) return;
    this.#input(this.#streams.get(frame.stream), (queue) => queue.push(frame.offset, frame.bytes));
  }

  #open(message: OpenMessage, existing: SocketStream | undefined): void {
    if (existing !== undefined) {
      this.#fail(existing, numberInUse(message.stream));
      return;
    }
    const { socket } = this.#options;
    const window = "window" in message ? message.window : undefined;
    const stream = new SocketStream({ number: message.stream, socket, window });
    if (this.#streams.size >= MAX_STREAMS) {
      this.#fail(stream, tooManyStreams());
      return;
    }
    this.#streams.set(stream.number, stream);
    this.#run(stream, message).then(
      (end) => this.#ended(stream, end),
      (thrown) => this.#fail(stream, SandboxError.from(thrown)),
    );
  }

  async #run(stream: SocketStream, message: OpenMessage): Promise<StreamEnd | undefined> {
    const { principal, dependencies } = this.#options;
    const { events } = dependencies;
    if (message.kind === "events") return await runEventStream(stream, message, { events, principal });
    const found = await dependencies.locator.locate(principal, message.sandbox);
    if (found?.kind === "node") return this.#passOn(stream, message);
    const live = this.#sandbox(message);
    stream.live = live;
    const hold = this.#holds.hold(live);
    stream.signal.addEventListener("abort", () => hold[Symbol.dispose](), { once: true });
    const subject = { stream, live };
    if (message.kind === "process") return await runProcessStream(subject, message);
    if (message.kind === "stdin") return await runStdinStream(subject, message);
    if (message.kind === "forget") {
      await live.forget(message.process);
      return {};
    }
    return await runWatchStream(subject, message);
  }

  /** The sandbox has left this node while its client waited for it here. */
  #passOn(stream: SocketStream, message: Exclude<OpenMessage, { kind: "events" }>): undefined {
    this.#remove(stream);
    if (this.#relay?.message(message, JSON.stringify(message))) return undefined;
    const error = errorBody(movedOn(message.sandbox), this.#options.requestId);
    this.#send({ type: "error", stream: stream.number, error });
  }

  #sandbox(message: Exclude<OpenMessage, { kind: "events" }>): LiveSandbox {
    const { principal, dependencies, audit } = this.#options;
    const operation = operationOf(message);
    try {
      const { readOnly } = routes[operation];
      const live = dependencies.service.open(principal, message.sandbox, { readOnly });
      audit.note(operation, live.id);
      return live;
    } catch (thrown) {
      audit.note(operation, message.sandbox, SandboxError.from(thrown));
      throw thrown;
    }
  }

  #input(stream: SocketStream | undefined, add: (queue: NonNullable<SocketStream["stdin"]>) => void): void {
    if (stream === undefined) return;
    try {
      if (stream.stdin === undefined) throw noInput(stream.number);
      add(stream.stdin);
    } catch (thrown) {
      this.#fail(stream, SandboxError.from(thrown));
    }
  }

  #ended(stream: SocketStream, end: StreamEnd | undefined): void {
    if (stream.signal.aborted || end === undefined) return;
    this.#send({ type: "end", stream: stream.number, ...end });
    this.#remove(stream);
  }

  #fail(stream: SocketStream, error: SandboxError): void {
    if (stream.signal.aborted) return;
    if (error.reason === "sandbox_stopped") {
      // It goes on elsewhere, or at another time: a client that connects again finds it, and continues where it is.
      this.#options.socket.close(closeCodes.comeBack, error.reason);
      return;
    }
    this.#remove(stream);
    const { logger, requestId } = this.#options;
    if (error.code === "internal") logger.error({ err: error, stream: stream.number }, "a stream failed");
    this.#send({ type: "error", stream: stream.number, error: errorBody(error, requestId), ...stream.past });
  }

  #remove(stream: SocketStream): void {
    if (this.#streams.get(stream.number) === stream) this.#streams.delete(stream.number);
    stream.end();
  }

  /** What is about no stream is about the connection, which cannot be trusted to go on. */
  #refuse({ error, stream }: UnreadableMessage): void {
    const { socket, logger, requestId } = this.#options;
    this.#malformed++;
    const isTooMuch = this.#malformed > MAX_MALFORMED;
    const open = stream === undefined ? undefined : this.#streams.get(stream);
    if (open !== undefined) this.#remove(open);
    const about = stream === undefined || isTooMuch ? {} : { stream };
    this.#send({ type: "error", ...about, error: errorBody(error, requestId) });
    if (stream !== undefined && !isTooMuch) return;
    logger.warn({ malformed: this.#malformed }, "a client was not understood");
    socket.close(isTooMuch ? closeCodes.policy : closeCodes.protocolError, error.reason);
  }

  #send(message: ServerMessage): void {
    this.#options.socket.send(message);
  }
}

/** What the same is called in REST; it takes the same rights. */
function operationOf(message: Exclude<OpenMessage, { kind: "events" }>): OperationId {
  if (message.kind === "stdin") return "writeProcessInput";
  if (message.kind === "watch") return "watchFiles";
  if (message.kind === "forget") return "deleteProcess";
  return message.spawn === undefined ? "readProcessOutput" : "startProcess";
}

function numberInUse(stream: number): SandboxError {
  return new SandboxError("already_exists", {
    reason: "stream_in_use",
    message: `stream ${stream} was opened again while it was open, so it was ended`,
    hint: "use each number once",
  });
}

function tooManyStreams(): SandboxError {
  return new SandboxError("resource_exhausted", {
    reason: "stream_limit",
    message: `a connection has at most ${MAX_STREAMS} streams`,
    hint: "close some, or open another connection",
    details: { maxStreams: MAX_STREAMS },
  });
}

function noInput(stream: number): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "stream_without_input",
    message: `stream ${stream} takes no input`,
    hint: 'send input on a stream of kind "stdin"',
  });
}
