import { SandboxError, systemClock } from "@sandpiper/core";
import { type ClientMessage, decodeDataFrame, errorBody, type ServerMessage } from "@sandpiper/protocol";
import type { Logger } from "pino";
import { hideStore } from "../auth/hide-store.ts";
import type { Principal } from "../auth/principal.ts";
import { movedOn, ownerHasNoUrl } from "../cluster/peer-errors.ts";
import { MAX_STREAMS, SocketRelay, tooManyStreams } from "../forward/socket-relay.ts";
import type { Location } from "../handoff/locator.ts";
import { publicError } from "../http/error-response.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { runConnectStream } from "./connect-stream.ts";
import { runEventStream } from "./event-stream.ts";
import { closeCodes, type MessageSocket } from "./message-socket.ts";
import { runProcessStream } from "./process-stream.ts";
import { readClientMessage, UnreadableMessage } from "./read-client-message.ts";
import { SandboxHolds } from "./sandbox-holds.ts";
import { rightsOf, type SocketAudit, type SocketOperation } from "./socket-audit.ts";
import type { SocketDependencies } from "./socket-dependencies.ts";
import { SocketStream, type StreamEnd } from "./socket-stream.ts";
import { runStdinStream } from "./stdin-stream.ts";
import { runWatchStream } from "./watch-stream.ts";

/** A client that sends more malformed messages is broken or hostile. */
const MAX_MALFORMED = 32;

type OpenMessage = Extract<ClientMessage, { type: "open" }>;
type SandboxMessage = Exclude<OpenMessage, { kind: "events" }>;

export interface SocketConnectionOptions {
  readonly socket: MessageSocket;
  readonly principal: Principal;
  readonly dependencies: SocketDependencies;
  readonly logger: Logger;
  readonly requestId: string;
  readonly audit: SocketAudit;
  /** Authenticates relayed streams at their nodes; undefined if streams are not relayed. */
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
    const { socket, requestId, credential, dependencies } = this.#options;
    const { relay, clock = systemClock } = dependencies;
    if (relay === undefined || credential === undefined) return undefined;
    return new SocketRelay({ ...relay, client: socket, credential, requestId, clock });
  }

  #message(text: string): void {
    const message = readClientMessage(text);
    if (message instanceof UnreadableMessage) this.#refuse(message);
    else if (!this.#relay?.message(message, text)) this.#handle(message, text);
  }

  #handle(message: ClientMessage, text: string): void {
    const stream = this.#streams.get(message.stream);
    // The client may not know yet that the stream has ended.
    if (message.type === "open") this.#locate(message, text);
    else if (message.type === "credit") stream?.credit.add(message.amount);
    else if (message.type === "finish") this.#input(stream, (queue) => queue.finish(message.offset));
    else if (stream !== undefined) this.#remove(stream);
  }

  /** Finds the stream's sandbox, then serves the stream here or relays it. */
  #locate(message: OpenMessage, text: string): void {
    const { principal, dependencies } = this.#options;
    const own = principal.kind === "sandbox" ? principal.sandboxId : undefined;
    const { sandbox = own, stream } = message;
    // Events about no sandbox are this node's own. A token for another sandbox is refused here.
    if (sandbox === undefined || (own !== undefined && own !== sandbox)) {
      this.#open(message, undefined);
      return;
    }
    if (this.#relay?.openAtKnownOwner({ stream, sandbox, text })) return;
    const { readOnly } = rightsOf(operationOf(message));
    let location: Location | Promise<Location>;
    try {
      location = dependencies.locator.locate(principal, sandbox, { readOnly });
    } catch (thrown) {
      const refused = Promise.reject(thrown);
      // The stream reports it, unless it cannot be opened at all.
      refused.catch(() => {});
      this.#open(message, refused);
      return;
    }
    if (this.#relay === undefined || !(location instanceof Promise)) this.#open(message, location);
    else this.#relay.open({ stream, sandbox, text }, location, (found, rest) => this.#serveHere(found, rest));
  }

  /** Serves a stream whose first messages arrived before its sandbox was located. */
  #serveHere(location: Location, [first, ...rest]: readonly (string | Uint8Array)[]): void {
    this.#open(readClientMessage(first as string) as OpenMessage, location);
    for (const data of rest) {
      if (typeof data === "string") this.#handle(readClientMessage(data) as ClientMessage, data);
      else this.#stdin(data);
    }
  }

  #data(bytes: Uint8Array): void {
    const frame = decodeDataFrame(bytes);
    if (frame === undefined || frame.source !== "stdin") {
      this.#refuse(new UnreadableMessage("the binary frame is not input", frame?.stream));
    } else if (!this.#relay?.data(frame.stream, bytes)) this.#stdin(bytes);
  }

  #stdin(bytes: Uint8Array): void {
    const frame = decodeDataFrame(bytes);
    if (frame === undefined) return;
    this.#input(this.#streams.get(frame.stream), (queue) => queue.push(frame.offset, frame.bytes));
  }

  #open(message: OpenMessage, location: Location | Promise<Location> | undefined): void {
    const existing = this.#streams.get(message.stream);
    if (existing !== undefined) {
      this.#fail(existing, numberInUse(message.stream));
      return;
    }
    const { socket } = this.#options;
    const window = "window" in message ? message.window : undefined;
    const takesInput = message.kind === "stdin" || message.kind === "connect";
    const stream = new SocketStream({ number: message.stream, socket, window, takesInput });
    if (this.#streams.size >= MAX_STREAMS) {
      this.#fail(stream, tooManyStreams());
      return;
    }
    this.#streams.set(stream.number, stream);
    this.#run(stream, message, location).then(
      (end) => this.#ended(stream, end),
      (thrown) => this.#fail(stream, publicError(thrown)),
    );
  }

  async #run(
    stream: SocketStream,
    message: OpenMessage,
    location: Location | Promise<Location> | undefined,
  ): Promise<StreamEnd | undefined> {
    const { principal, dependencies } = this.#options;
    const { feed } = dependencies;
    if (message.kind === "events") {
      const found = await location;
      if (found?.kind === "unreachable") throw ownerHasNoUrl("events", { id: found.saved.record.id, node: found.id });
      return await runEventStream(stream, message, { feed, principal });
    }
    const live = await this.#use(stream, message, location);
    if (live === undefined) return this.#relocate(stream, message);
    // A client that left meanwhile repeats the message on its next connection.
    if (stream.signal.aborted) return undefined;
    stream.live = live;
    const hold = message.kind === "connect" ? live.hold("preview") : this.#holds.hold(live);
    stream.signal.addEventListener("abort", () => hold[Symbol.dispose](), { once: true });
    const subject = { stream, live };
    if (message.kind === "process") return await runProcessStream(subject, message);
    if (message.kind === "stdin") return await runStdinStream(subject, message);
    if (message.kind === "connect") return await runConnectStream(subject, message);
    if (message.kind === "forget") {
      await live.forget(message.process, { isSpent: true });
      return {};
    }
    return await runWatchStream(subject, message);
  }

  /** The sandbox, restored if it was at rest; undefined if another node owns it. */
  async #use(
    { signal }: SocketStream,
    message: SandboxMessage,
    location: Location | Promise<Location> | undefined,
  ): Promise<LiveSandbox | undefined> {
    const { principal, dependencies, audit } = this.#options;
    const { locator, access } = dependencies;
    const operation = operationOf(message);
    const { readOnly } = rightsOf(operation);
    try {
      const { sandbox } = message;
      const known = await location;
      // On a connection from another node: that node moves the sandbox itself.
      if (known?.kind === "unreachable" && this.#relay === undefined) throw movedOn(sandbox);
      const purpose = "continued" in message && message.continued ? "manage" : "use";
      const found = await locator.claim(principal, sandbox, { purpose, readOnly, location: known, signal });
      if (found.kind === "node") return undefined;
      const live = (found.kind === "here" && found.live) || access.open(principal, sandbox, { readOnly });
      await audit.note(operation, live.id);
      return live;
    } catch (thrown) {
      await audit.note(operation, message.sandbox, SandboxError.from(thrown));
      throw thrown;
    }
  }

  /** Handles a sandbox that left this node while its client waited. */
  #relocate(stream: SocketStream, message: SandboxMessage): undefined {
    this.#remove(stream);
    if (this.#relay === undefined) {
      const error = errorBody(movedOn(message.sandbox), this.#options.requestId);
      this.#send({ type: "error", stream: stream.number, error });
    } else this.#locate(message, JSON.stringify(message));
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
      // A client that reconnects finds the sandbox where it is then, and continues at its offset.
      this.#options.socket.close(closeCodes.comeBack, error.reason);
      return;
    }
    this.#remove(stream);
    const { logger, requestId, principal } = this.#options;
    if (["internal", "data_loss"].includes(error.code)) {
      logger.error({ err: error, stream: stream.number, requestId }, "a stream failed");
    }
    const shown = errorBody(hideStore(error, principal), requestId);
    this.#send({ type: "error", stream: stream.number, error: shown, ...stream.past });
  }

  #remove(stream: SocketStream): void {
    if (this.#streams.get(stream.number) === stream) this.#streams.delete(stream.number);
    stream.end();
  }

  /** A malformed message about no stream ends the connection: its framing cannot be trusted. */
  #refuse({ error, stream }: UnreadableMessage): void {
    const { socket, logger, requestId } = this.#options;
    this.#malformed++;
    const isTooMuch = this.#malformed > MAX_MALFORMED;
    const open = stream === undefined ? undefined : this.#streams.get(stream);
    if (open !== undefined) this.#remove(open);
    const about = stream === undefined || isTooMuch ? {} : { stream };
    this.#send({ type: "error", ...about, error: errorBody(error, requestId) });
    if (stream !== undefined && !isTooMuch) return;
    logger.warn({ malformed: this.#malformed }, "closed a connection that sent malformed messages");
    socket.close(isTooMuch ? closeCodes.policy : closeCodes.protocolError, error.reason);
  }

  #send(message: ServerMessage): void {
    this.#options.socket.send(message);
  }
}

/** The operation of REST that needs the same rights, if there is one. */
function operationOf(message: OpenMessage): SocketOperation {
  if (message.kind === "events") return "listEvents";
  if (message.kind === "stdin") return "writeProcessInput";
  if (message.kind === "watch") return "watchFiles";
  if (message.kind === "forget") return "deleteProcess";
  if (message.kind === "connect") return "connectPort";
  return message.spawn === undefined ? "readProcessOutput" : "startProcess";
}

function numberInUse(stream: number): SandboxError {
  return new SandboxError("stream_in_use", { message: `stream ${stream} was closed because it was opened twice` });
}

function noInput(stream: number): SandboxError {
  return new SandboxError("stream_without_input", { message: `stream ${stream} takes no input` });
}
