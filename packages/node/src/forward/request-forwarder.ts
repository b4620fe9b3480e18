import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, Agent as TlsAgent } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { urlToHttpOptions } from "node:url";
import { type Clock, SandboxError } from "@sandpiper/core";
import type { Bindings } from "../http/call.ts";
import { forwardedAnswerHeaders, forwardedRequestHeaders } from "./hop-headers.ts";
import { NODE_PROOF_HEADER, type NodeProof } from "../cluster/node-proof.ts";
import { ownerUnreachable } from "../cluster/peer-errors.ts";

const CONNECT_TIMEOUT_MS = 5000;

export interface RequestForwarderOptions {
  readonly proof: NodeProof;
  readonly clock: Clock;
  /** How often it is asked whether the node still holds what the request is about: one that hangs never answers. */
  readonly recheckMs: number;
}

export interface ForwardOptions {
  readonly url: string;
  readonly path: string;
  readonly requestId: string;
  readonly bindings: Bindings;
  /** Whether the node that was asked is still the one to ask. */
  readonly isStillRight: () => Promise<boolean>;
}

/** Passes requests on to other nodes and their answers back, both as they come, at the pace of whoever reads. */
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

  [Symbol.dispose](): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #ask(request: Request, options: ForwardOptions, signal: AbortSignal): Promise<IncomingMessage> {
    const body = request.method === "GET" || request.method === "HEAD" ? null : request.body;
    try {
      return await this.#askOnce(request, { ...options, body, signal });
    } catch (thrown) {
      // A connection that was kept may have been closed by the other side just when it was taken again.
      if (body !== null || signal.aborted || !(thrown instanceof ConnectionReused)) throw thrown;
      return await this.#askOnce(request, { ...options, body, signal });
    }
  }

  async #askOnce(
    request: Request,
    options: ForwardOptions & { readonly body: ReadableStream | null; readonly signal: AbortSignal },
  ): Promise<IncomingMessage> {
    const { url, path, requestId, body, signal } = options;
    const { proof } = this.#options;
    const target = new URL(url);
    const { method } = request;
    const isTls = target.protocol === "https:";
    const headers = {
      ...forwardedRequestHeaders(request.headers),
      "x-request-id": requestId,
      [NODE_PROOF_HEADER]: proof.sign({ method, path }, url),
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
    // What goes wrong with the upload shows in the answer, or in there being none.
    if (body === null) outgoing.end();
    else pipeline(Readable.fromWeb(body as NodeReadableStream), outgoing).catch(() => {});
    try {
      return (await answered)[0];
    } catch (thrown) {
      throw outgoing.reusedSocket ? new ConnectionReused(thrown) : thrown;
    } finally {
      // Errors that follow the answer end the answer, too.
      outgoing.on("error", () => {});
    }
  }

  #limitConnecting(outgoing: ClientRequest): void {
    const { clock } = this.#options;
    outgoing.once("socket", (socket) => {
      if (!socket.connecting) return;
      const stop = clock.schedule(CONNECT_TIMEOUT_MS, () => outgoing.destroy(new Error("no connection in time")));
      socket.once("connect", stop);
      outgoing.once("close", stop);
    });
  }

  #recheck({ isStillRight }: ForwardOptions, gone: AbortController): Disposable {
    const { clock, recheckMs } = this.#options;
    let isDone = false;
    let stop = () => {};
    const next = () => {
      stop = clock.schedule(recheckMs, async () => {
        // A store that cannot be asked says nothing about the node.
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
    super("the connection that was kept is closed", { cause });
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

/** An answer that is cut on the way cuts the connection, so that nobody takes a part for the whole. */
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
