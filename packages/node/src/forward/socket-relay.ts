import { type Clock, SandboxError } from "@sandpiper/core";
import { type ClientMessage, errorBody, type SandboxId } from "@sandpiper/protocol";
import type { NodeProof } from "../cluster/node-proof.ts";
import type { Location } from "../handoff/locator.ts";
import { OwnerSocket, type RelayClient } from "./owner-socket.ts";

/** Streams of one connection, and as many relayed ones. */
export const MAX_STREAMS = 1024;
/** Limit for messages of streams that are still being located; above it, nothing is read from the client. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const POLICY = 1008;
/** "Service restart": the client reconnects and continues at its offsets. */
const RESTART = 1012;

export interface SocketRelayOptions {
  readonly client: RelayClient;
  readonly credential: string;
  readonly requestId: string;
  readonly proof: NodeProof;
  readonly clock: Clock;
  /** A node that is silent for this long is considered dead. */
  readonly silenceMs: number;
}

/** The message that opens a stream. */
export interface StreamOpening {
  readonly stream: number;
  readonly sandbox: SandboxId;
  /** The message as the client sent it. */
  readonly text: string;
}

/** The route of one stream's messages; they wait while it is unknown. */
interface StreamRoute {
  readonly sandbox: SandboxId;
  owner: OwnerSocket | undefined;
  readonly waiting: (string | Uint8Array)[];
  /** The client has closed the stream, so no message will report its end. */
  isClosed: boolean;
}

/**
 * Relays streams to the nodes that own their sandboxes, over one connection to each node. The client chooses the stream
 * numbers, so messages pass unchanged in both directions.
 */
export class SocketRelay {
  readonly #options: SocketRelayOptions;
  readonly #routes = new Map<number, StreamRoute>();
  readonly #owners = new Map<string, OwnerSocket>();
  /** Owners of sandboxes, remembered while the connection to them lasts and nothing fails on it. */
  readonly #ownerOf = new Map<SandboxId, OwnerSocket>();
  #waitingBytes = 0;
  #hold: Disposable | undefined;
  #isClosed = false;

  constructor(options: SocketRelayOptions) {
    this.#options = options;
    options.client.closed.then(() => {
      this.#isClosed = true;
      this.#routes.clear();
      for (const owner of this.#owners.values()) owner.terminate();
    });
  }

  /** Relays a message if its stream is relayed or being located. `text` is the message as the client sent it. */
  message(message: ClientMessage, text: string): boolean {
    const route = this.#routes.get(message.stream);
    if (route === undefined) return false;
    this.#pass(route, text);
    if (message.type === "close") route.isClosed = true;
    if (route.isClosed && route.owner !== undefined) this.#routes.delete(message.stream);
    return true;
  }

  /** As `message`, for a binary frame of a stream. */
  data(stream: number, frame: Uint8Array): boolean {
    const route = this.#routes.get(stream);
    if (route === undefined) return false;
    this.#pass(route, frame);
    return true;
  }

  /** Opens a stream at the node that other streams about the same sandbox are relayed to; false if there are none. */
  openAtKnownOwner(opening: StreamOpening): boolean {
    const owner = this.#ownerOf.get(opening.sandbox);
    if (owner !== undefined) this.#open(opening, owner);
    return owner !== undefined;
  }

  /**
   * Opens a stream at the node that owns the sandbox. If no other node owns it, `serveHere` gets the location and the
   * messages that have arrived meanwhile, the opening first.
   */
  open(
    opening: StreamOpening,
    location: Location | Promise<Location>,
    serveHere: (location: Location, messages: readonly (string | Uint8Array)[]) => void,
  ): void {
    const route = this.#open(opening, undefined);
    if (route === undefined) return;
    this.#connect(opening.stream, route, { location, serveHere }).catch((thrown) =>
      this.#fail(opening.stream, SandboxError.from(thrown)),
    );
  }

  #open({ stream, sandbox, text }: StreamOpening, owner: OwnerSocket | undefined): StreamRoute | undefined {
    if (this.#routes.size >= MAX_STREAMS) {
      this.#fail(stream, tooManyStreams());
      return undefined;
    }
    const route: StreamRoute = { sandbox, owner, waiting: [], isClosed: false };
    this.#routes.set(stream, route);
    this.#pass(route, text);
    return route;
  }

  async #connect(
    stream: number,
    route: StreamRoute,
    { location, serveHere }: { location: Location | Promise<Location>; serveHere: Parameters<SocketRelay["open"]>[2] },
  ): Promise<void> {
    let found: Location;
    try {
      found = await location;
      if (this.#isClosed) return;
      if (found.kind === "node") {
        route.owner = this.#owner(found.url);
        this.#ownerOf.set(route.sandbox, route.owner);
      }
    } finally {
      this.#waited(route);
    }
    const { owner } = route;
    if (owner === undefined || route.isClosed) this.#routes.delete(stream);
    const messages = route.waiting.splice(0);
    if (owner === undefined) serveHere(found, messages);
    else for (const data of messages) owner.send(data);
  }

  #pass(route: StreamRoute, data: string | Uint8Array): void {
    if (route.owner !== undefined) {
      route.owner.send(data);
      return;
    }
    route.waiting.push(data);
    this.#waitingBytes += data.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#hold ??= this.#options.client.holdBack();
  }

  #waited({ waiting }: StreamRoute): void {
    this.#waitingBytes -= waiting.reduce((sum, { length }) => sum + length, 0);
    if (this.#waitingBytes > MAX_WAITING_BYTES) return;
    this.#hold?.[Symbol.dispose]();
    this.#hold = undefined;
  }

  #owner(url: string): OwnerSocket {
    const known = this.#owners.get(url);
    if (known !== undefined) return known;
    const { credential, requestId, client, proof, clock, silenceMs } = this.#options;
    const owner: OwnerSocket = new OwnerSocket({
      url,
      credential,
      requestId,
      client,
      proof,
      clock,
      silenceMs,
      onText: (text) => this.#noteEnd(text),
      onClose: (end) => {
        this.#owners.delete(url);
        for (const [sandbox, found] of this.#ownerOf) if (found === owner) this.#ownerOf.delete(sandbox);
        this.#lost(owner, end);
      },
    });
    this.#owners.set(url, owner);
    return owner;
  }

  /** Drops the route of a stream that has ended. */
  #noteEnd(text: string): void {
    const { type, stream } = JSON.parse(text) as { readonly type?: unknown; readonly stream?: number };
    if ((type !== "end" && type !== "error") || stream === undefined) return;
    const route = this.#routes.get(stream);
    if (type === "error" && route !== undefined) this.#ownerOf.delete(route.sandbox);
    this.#routes.delete(stream);
  }

  #lost(owner: OwnerSocket, end: Parameters<ConstructorParameters<typeof OwnerSocket>[0]["onClose"]>[0]): void {
    const streams = [...this.#routes].filter(([, route]) => route.owner === owner).map(([stream]) => stream);
    if (this.#isClosed || streams.length === 0) return;
    const { client } = this.#options;
    if (end.refusal !== undefined) for (const stream of streams) this.#fail(stream, end.refusal);
    else if (end.code === POLICY) client.close(POLICY, end.reason);
    else client.close(RESTART, "lost the node that owns a sandbox");
  }

  #fail(stream: number, error: SandboxError): void {
    const { client, requestId } = this.#options;
    this.#routes.delete(stream);
    client.send({ type: "error", stream, error: errorBody(error, requestId) });
  }
}

export function tooManyStreams(): SandboxError {
  return new SandboxError("stream_limit", {
    message: `a connection can have at most ${MAX_STREAMS} streams`,
    details: { maxStreams: MAX_STREAMS },
  });
}
