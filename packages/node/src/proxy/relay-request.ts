import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** A request of a client that is relayed to a server in a sandbox, or to another node. */
export interface RelayedExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether the client waits for a 100 (Continue) before it sends its body. */
  readonly expectsContinue: boolean;
}

/** Meaningless or dangerous after the body. */
const REFUSED_TRAILERS = /^(set-cookie|location|content-.*|transfer-encoding|trailer|connection|host|authorization)$/i;

/**
 * Sends the client's request, and resolves with the head of the answer. Bodies flow with back-pressure; a client that leaves
 * ends the request. Rejects if there is no answer.
 */
export function sendRequest(outgoing: ClientRequest, exchange: RelayedExchange): Promise<IncomingMessage> {
  const { request, response, expectsContinue } = exchange;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const leave = () => void outgoing.destroy();
  response.once("close", leave);
  outgoing.once("response", resolve);
  outgoing.once("upgrade", (_, socket: Duplex) => {
    socket.destroy();
    reject(new Error("the server switched protocols without being asked"));
  });
  outgoing.on("error", reject);
  outgoing.once("close", () => {
    response.off("close", leave);
    reject(new Error("the connection closed before the answer"));
  });
  if (expectsContinue) {
    outgoing.once("continue", () => !response.headersSent && response.writeContinue());
    outgoing.flushHeaders();
  }
  if (hasBody(request)) sendBody(request, outgoing);
  else outgoing.end();
  return promise;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function sendBody(request: IncomingMessage, outgoing: ClientRequest): void {
  request.once("end", () => {
    const trailers = trailersOf(request);
    if (trailers.length > 0) outgoing.addTrailers(trailers);
    outgoing.end();
  });
  // A body that is cut short must not look complete to the server.
  request.once("close", () => !request.complete && outgoing.destroy());
  request.pipe(outgoing, { end: false });
}

/** Relays an answer with the given headers. An answer that is cut short also closes the client's connection. */
export function sendAnswer(incoming: IncomingMessage, exchange: RelayedExchange, headers: readonly string[]): void {
  const { request, response, expectsContinue } = exchange;
  // Without the 100 it waited for, the client may or may not send its body: the next request could not be told apart.
  if (expectsContinue && !request.complete) response.shouldKeepAlive = false;
  const { statusCode = 502, statusMessage = "" } = incoming;
  response.writeHead(statusCode, isReason(statusMessage) ? statusMessage : "", [...headers]);
  // Events must not wait for the first byte of a body.
  response.flushHeaders();
  incoming.once("end", () => {
    const trailers = trailersOf(incoming);
    if (trailers.length > 0) response.addTrailers(trailers);
    response.end();
  });
  incoming.once("close", () => !incoming.complete && response.destroy());
  incoming.on("error", () => response.destroy());
  incoming.pipe(response, { end: false });
}

function isReason(text: string): boolean {
  return /^[\t\x20-\x7e]*$/.test(text);
}

function trailersOf({ rawTrailers }: IncomingMessage): [string, string][] {
  const trailers: [string, string][] = [];
  for (let at = 0; at + 1 < rawTrailers.length; at += 2) {
    const name = rawTrailers[at] ?? "";
    if (!REFUSED_TRAILERS.test(name)) trailers.push([name, rawTrailers[at + 1] ?? ""]);
  }
  return trailers;
}
