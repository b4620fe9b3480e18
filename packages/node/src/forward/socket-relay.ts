import { type Clock, SandboxError } from "@sandpiper/core";
import { type ClientMessage, errorBody, type SandboxId } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { NodeProof } from "../cluster/node-proof.ts";
import { OwnerSocket } from "./owner-socket.ts";
import type { RelayClient } from "./relay-client.ts";
import type { Whereabouts } from "../cluster/whereabouts.ts";

const MAX_STREAMS = 1024;
/** What may wait until it is known where sandboxes are; beyond it the client is not read from. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const POLICY = 1008;
/** "Service restart": the client connects again, and goes on where it was. */
const RESTART = 1012;

export interface SocketRelayOptions {
  readonly client: RelayClient;
  readonly principal: Principal;
  readonly credential: string;
  readonly requestId: string;
  readonly whereabouts: Whereabouts;
  readonly proof: NodeProof;
  readonly clock: Clock;
  /** A node that gives no sign of life for so long is taken for gone. */
  readonly silenceMs: number;
  /** Takes a message that is for this node after all, as it came, without asking the relay again. */
  readonly serveHere: (data: string | Uint8Array) => void;
}

/** Where the messages of a stream go; until that is known, they wait. */
interface Way {
  readonly sandbox: SandboxId;
  owner: OwnerSocket | undefined;
  readonly waiting: (string | Uint8Array)[];
  /** The client has given the stream up; nothing will tell its end. */
  isGivenUp: boolean;
}

/**
 * Passes streams about sandboxes of other nodes on to these, over one connection to each. Streams have numbers of the
 * client's choice, so messages are passed on as they are, in both directions.
 */
export class SocketRelay {
  readonly #options: SocketRelayOptions;
  readonly #ways = new Map<number, Way>();
  readonly #owners = new Map<string, OwnerSocket>();
  /** Where sandboxes were found, for as long as the connection to there lasts and nothing fails on it. */
  readonly #found = new Map<SandboxId, OwnerSocket>();
  #waitingBytes = 0;
  #hold: Disposable | undefined;
  #isClosed = false;

  constructor(options: SocketRelayOptions) {
    this.#options = options;
    options.client.closed.then(() => {
      this.#isClosed = true;
      this.#ways.clear();
      for (const owner of this.#owners.values()) owner.terminate();
    });
  }

  /** False: it is for this node. `text` is the message as it came. */
  message(message: ClientMessage, text: string): boolean {
    const way = this.#ways.get(message.stream);
    if (way === undefined) return message.type === "open" && this.#open(message, text);
    this.#pass(way, text);
    if (message.type === "close") way.isGivenUp = true;
    if (way.isGivenUp && way.owner !== undefined) this.#ways.delete(message.stream);
    return true;
  }

  /** As `message`, for a binary frame of a stream. */
  data(stream: number, frame: Uint8Array): boolean {
    const way = this.#ways.get(stream);
    if (way === undefined) return false;
    this.#pass(way, frame);
    return true;
  }

  #open(message: Extract<ClientMessage, { type: "open" }>, text: string): boolean {
    const { principal, whereabouts } = this.#options;
    const own = principal.kind === "sandbox" ? principal.sandboxId : undefined;
    const { sandbox = own, stream } = message;
    // Events that are about no sandbox are each node's own.
    if (sandbox === undefined || whereabouts.isHere(sandbox)) return false;
    if (own !== undefined && own !== sandbox) return false;
    if (this.#ways.size >= MAX_STREAMS) {
      this.#fail(stream, tooManyStreams());
      return true;
    }
    const way: Way = { sandbox, owner: this.#found.get(sandbox), waiting: [], isGivenUp: false };
    this.#ways.set(stream, way);
    this.#pass(way, text);
    if (way.owner !== undefined) return true;
    this.#find(stream, way).catch((thrown) => this.#fail(stream, SandboxError.from(thrown)));
    return true;
  }

  async #find(stream: number, way: Way): Promise<void> {
    const { whereabouts, serveHere } = this.#options;
    try {
      const found = await whereabouts.find(way.sandbox);
      if (this.#isClosed) return;
      if (found.kind === "node") {
        way.owner = this.#owner(found.url);
        this.#found.set(way.sandbox, way.owner);
      }
    } finally {
      this.#waited(way);
    }
    if (way.owner === undefined || way.isGivenUp) this.#ways.delete(stream);
    for (const data of way.waiting.splice(0)) {
      if (way.owner === undefined) serveHere(data);
      else way.owner.send(data);
    }
  }

  #pass(way: Way, data: string | Uint8Array): void {
    if (way.owner !== undefined) {
      way.owner.send(data);
      return;
    }
    way.waiting.push(data);
    this.#waitingBytes += data.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#hold ??= this.#options.client.holdBack();
  }

  #waited({ waiting }: Way): void {
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
        for (const [sandbox, found] of this.#found) if (found === owner) this.#found.delete(sandbox);
        this.#lost(owner, end);
      },
    });
    this.#owners.set(url, owner);
    return owner;
  }

  /** A stream that has ended needs no way any more. */
  #noteEnd(text: string): void {
    const { type, stream } = JSON.parse(text) as { readonly type?: unknown; readonly stream?: number };
    if ((type !== "end" && type !== "error") || stream === undefined) return;
    const way = this.#ways.get(stream);
    if (type === "error" && way !== undefined) this.#found.delete(way.sandbox);
    this.#ways.delete(stream);
  }

  #lost(owner: OwnerSocket, end: Parameters<ConstructorParameters<typeof OwnerSocket>[0]["onClose"]>[0]): void {
    const streams = [...this.#ways].filter(([, way]) => way.owner === owner).map(([stream]) => stream);
    if (this.#isClosed || streams.length === 0) return;
    const { client } = this.#options;
    if (end.refusal !== undefined) for (const stream of streams) this.#fail(stream, end.refusal);
    else if (end.code === POLICY) client.close(POLICY, end.reason);
    else client.close(RESTART, "a sandbox's node has gone");
  }

  #fail(stream: number, error: SandboxError): void {
    const { client, requestId } = this.#options;
    this.#ways.delete(stream);
    client.send({ type: "error", stream, error: errorBody(error, requestId) });
  }
}

function tooManyStreams(): SandboxError {
  return new SandboxError("resource_exhausted", {
    reason: "stream_limit",
    message: `a connection has at most ${MAX_STREAMS} streams`,
    hint: "close some, or open another connection",
    details: { maxStreams: MAX_STREAMS },
  });
}
