import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, Agent as TlsAgent } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { urlToHttpOptions } from "node:url";
import type { HttpBindings } from "@hono/node-server";
import { type Clock, SandboxError } from "@sandpiper/core";
import { NODE_PROOF_HEADER, type NodeProof } from "../cluster/node-proof.ts";
import { ownerUnreachable } from "../cluster/peer-errors.ts";
import { hopByHop, namedIn } from "./hop-by-hop.ts";

const CONNECT_TIMEOUT_MS = 5000;

/** What the HTTP server provides besides the request; empty without a server, as in tests. */
export type Bindings = Partial<HttpBindings>;

export interface RequestForwarderOptions {
  readonly proof: NodeProof;
  readonly clock: Clock;
  /** How often to check that the other node still owns the sandbox, because a node that hangs never answers. */
  readonly recheckMs: number;
}

export interface ForwardOptions {
  readonly url: string;
  readonly requestId: string;
  readonly bindings: Bindings;
  /** Whether the node at `url` is still the right one to ask. */
  readonly isStillRight: () => Promise<boolean>;
}

type OpenOptions = Pick<ForwardOptions, "url" | "isStillRight">;

/** The origin at which the caller reached the node that forwards the request. */
export const FORWARDED_ORIGIN_HEADER = "x-sandpiper-origin";

/** Describes the request of a preview's visitor to the node that owns the sandbox. */
export const PREVIEW_HEADER = "x-sandpiper-preview";

/** A preview's request on its way to another node. */
export interface RelayedRequest {
  readonly method: string;
  readonly path: string;
  /** As a flat list, without those of a single connection. */
  readonly headers: readonly string[];
  /** The value of the header `PREVIEW_HEADER`, which the proof covers. */
  readonly claim: string;
}

/** Forwards requests to other nodes and streams both bodies with back-pressure. */
export class RequestForwarder implements Disposable {
  readonly #options: RequestForwarderOptions;
  readonly #agents = { "http:": new Agent({ keepAlive: true }), "https:": new TlsAgent({ keepAlive: true }) };

  constructor(options: RequestForwarderOptions) {
    this.#options = options;
  }

  async forward(request: Request, options: ForwardOptions): Promise<Response> {
    const gone = new AbortController();
    const recheck = this.#recheck(options, gone);
    const signal = AbortSignal.any([request.signal, gone.signal]);
    try {
      const incoming = await this.#ask(request, options, signal);
      const cut = () => void incoming.destroy();
      signal.addEventListener("abort", cut, { once: true });
      incoming.once("close", () => {
        recheck[Symbol.dispose]();
        signal.removeEventListener("abort", cut);
      });
      return answer(request, incoming, options.bindings);
    } catch (thrown) {
      recheck[Symbol.dispose]();
      if (request.signal.aborted) throw SandboxError.from(thrown, "canceled");
      throw ownerUnreachable(options.url, thrown);
    }
  }

  /** Opens a request whose head and body the caller relays itself; it is aborted when the other node is no longer right. */
  open({ method, path, headers, claim }: RelayedRequest, options: OpenOptions): ClientRequest {
    const { url } = options;
    const gone = new AbortController();
    const recheck = this.#recheck(options, gone);
    const target = new URL(url);
    const isTls = target.protocol === "https:";
    const proof = this.#options.proof.sign({ method, path, body: Buffer.from(claim) }, url);
    const outgoing = (isTls ? requestHttps : requestHttp)({
      ...urlToHttpOptions(target),
      path,
      method,
      headers: ["host", target.host, ...headers, NODE_PROOF_HEADER, proof, PREVIEW_HEADER, claim],
      agent: this.#agents[isTls ? "https:" : "http:"],
      signal: gone.signal,
    });
    this.#limitConnecting(outgoing);
    outgoing.once("close", () => recheck[Symbol.dispose]());
    return outgoing;
  }

  [Symbol.dispose](): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #ask(request: Request, options: ForwardOptions, signal: AbortSignal): Promise<IncomingMessage> {
    const body = request.method === "GET" || request.method === "HEAD" ? null : request.body;
    try {
      return await this.#askOnce(request, { ...options, body, signal });
    } catch (thrown) {
      // The other side may have closed a kept-alive connection just as it was reused.
      if (body !== null || signal.aborted || !(thrown instanceof ConnectionReused)) throw thrown;
      return await this.#askOnce(request, { ...options, body, signal });
    }
  }

  async #askOnce(
    request: Request,
    options: ForwardOptions & { readonly body: ReadableStream | null; readonly signal: AbortSignal },
  ): Promise<IncomingMessage> {
    const { url, requestId, body, signal } = options;
    const { proof } = this.#options;
    const target = new URL(url);
    const { method } = request;
    const path = pathOf(request.url);
    const isTls = target.protocol === "https:";
    const headers = {
      ...forwardedRequestHeaders(request.headers),
      "x-request-id": requestId,
      [NODE_PROOF_HEADER]: proof.sign({ method, path }, url),
      [FORWARDED_ORIGIN_HEADER]: new URL(request.url).origin,
    };
    const agent = this.#agents[isTls ? "https:" : "http:"];
    const outgoing = (isTls ? requestHttps : requestHttp)({
      ...urlToHttpOptions(target),
      path,
      method,
      headers,
      agent,
      signal,
    });
    this.#limitConnecting(outgoing);
    const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
    // A failed upload shows in the answer, or in its absence.
    if (body === null) outgoing.end();
    else pipeline(Readable.fromWeb(body as NodeReadableStream), outgoing).catch(() => {});
    try {
      return (await answered)[0];
    } catch (thrown) {
      throw outgoing.reusedSocket ? new ConnectionReused(thrown) : thrown;
    } finally {
      // Later errors end the answer's stream, which reports them.
      outgoing.on("error", () => {});
    }
  }

  #limitConnecting(outgoing: ClientRequest): void {
    const { clock } = this.#options;
    outgoing.once("socket", (socket) => {
      if (!socket.connecting) return;
      const onTimeout = () => outgoing.destroy(new Error(`no connection within ${CONNECT_TIMEOUT_MS} ms`));
      const stop = clock.schedule(CONNECT_TIMEOUT_MS, onTimeout);
      socket.once("connect", stop);
      outgoing.once("close", stop);
    });
  }

  #recheck({ isStillRight }: Pick<ForwardOptions, "isStillRight">, gone: AbortController): Disposable {
    const { clock, recheckMs } = this.#options;
    let isDone = false;
    let stop = () => {};
    const next = () => {
      stop = clock.schedule(recheckMs, async () => {
        // An unreachable store says nothing about the node.
        if (!(await isStillRight().catch(() => true))) gone.abort();
        else if (!isDone) next();
      });
    };
    next();
    return {
      [Symbol.dispose]: () => {
        isDone = true;
        stop();
      },
    };
  }
}

class ConnectionReused extends Error {
  constructor(cause: unknown) {
    super("the kept-alive connection was closed", { cause });
  }
}

function answer(request: Request, incoming: IncomingMessage, bindings: Bindings): Response {
  const { statusCode: status = 502, headersDistinct } = incoming;
  const headers = forwardedAnswerHeaders(headersDistinct);
  if (request.method !== "HEAD" && status !== 204 && status !== 304) {
    return new Response(bodyOf(incoming, bindings), { status, headers });
  }
  incoming.resume();
  return new Response(null, { status, headers });
}

/** A truncated answer also closes the client's connection, so that the client does not take it for complete. */
function bodyOf(incoming: IncomingMessage, bindings: Bindings): ReadableStream<Uint8Array> {
  const pieces = incoming[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (thrown) {
          if (bindings.outgoing === undefined) controller.error(thrown);
          else bindings.outgoing.destroy();
        }
      },
      cancel() {
        incoming.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** The path of a URL with its query, exactly as it was sent. */
export function pathOf(url: string): string {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2));
}

/** Replaced for the next hop, so that clients cannot claim to be a node. */
const replaced = ["host", "expect", NODE_PROOF_HEADER];

function forwardedRequestHeaders(headers: Headers): Record<string, string> {
  const dropped = new Set([...hopByHop, ...replaced, ...namedIn(headers.get("connection"))]);
  return Object.fromEntries([...headers].filter(([name]) => !dropped.has(name)));
}

function forwardedAnswerHeaders(headers: NodeJS.Dict<string[]>): Headers {
  const dropped = new Set([...hopByHop, ...namedIn(headers["connection"]?.join(","))]);
  const kept = new Headers();
  for (const [name, values = []] of Object.entries(headers)) {
    if (!dropped.has(name)) for (const value of values) kept.append(name, value);
  }
  return kept;
}
