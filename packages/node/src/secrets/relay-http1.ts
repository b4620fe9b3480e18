import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from "node:http";
import { type Duplex, finished } from "node:stream";
import { systemClock } from "@sandpiper/core";
import { type Admit, type Exchange, type GuestRequest, headerPairs, RefusedRequest } from "./exchange.ts";
import type { HeaderPair } from "./inject.ts";

const MAX_HEAD_BYTES = 64 * 1024;
/** How long a sandbox may take to end its side of a connection that the server has ended. */
const LINGER_MS = 10_000;
const METHODS_WITH_BODY = new Set(["POST", "PUT", "PATCH"]);

export interface RelayOptions {
  /** Undefined if `admit` refuses every request. */
  readonly upstream: Duplex | undefined;
  readonly admit: Admit;
}

/**
 * Serves HTTP/1.1 on a connection of a sandbox and repeats each request on one connection to the server. The end of either
 * connection ends the other. Resolves when both have ended.
 */
export async function relayHttp1(guest: Duplex, { upstream, admit }: RelayOptions): Promise<void> {
  const agent = upstream && new OneConnection(upstream);
  const exchangeOf = async (request: IncomingMessage) => admit(guestRequest(request));

  let openAnswers = 0;
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    response.sendDate = false;
    openAnswers++;
    response.once("close", () => {
      openAnswers--;
      endIfIdle();
    });
    let exchange: Exchange;
    try {
      exchange = await exchangeOf(request);
    } catch (thrown) {
      // The rest of its body is not read, so no other request can follow.
      return refuse(response, RefusedRequest.from(thrown));
    }
    const outgoing = send(request, exchange, agent as Agent);
    answer(outgoing, { request, response, exchange });
    request.pipe(outgoing);
  };

  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // From now on the two connections end each other.
    openAnswers++;
    socket.on("error", () => {});
    try {
      const exchange = await exchangeOf(request);
      switchProtocols(send(request, exchange, agent as Agent), { socket, head, exchange });
    } catch (thrown) {
      const { status, text } = RefusedRequest.from(thrown);
      socket.end(
        headText(status, "Refused", [
          ["Connection", "close"],
          ["Content-Type", "text/plain"],
        ]) + text,
      );
    }
  };

  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES,
    requestTimeout: 0,
    headersTimeout: 0,
    keepAliveTimeout: 0,
  });
  server.on("request", serve);
  server.on("checkContinue", serve);
  server.on("checkExpectation", serve);
  server.on("upgrade", upgrade);
  server.on("connect", (_request, socket: Duplex) => socket.end(headText(405, "Method Not Allowed", [])));
  server.on("clientError", (_error, socket: Duplex) => {
    if (socket.writable) socket.end(headText(400, "Bad Request", [["Connection", "close"]]));
  });
  const ended = Promise.all([endOf(guest), upstream && endOf(upstream)]);
  // An answer may still be on its way to the sandbox when the server has ended the connection.
  const endIfIdle = () => {
    if (upstream?.readableEnded !== false && openAnswers === 0) endSoon(guest);
  };
  upstream?.once("end", endIfIdle);
  guest.once("close", () => upstream?.destroy());
  server.emit("connection", guest);
  await ended;
}

/** Hands out one existing connection. When that has ended, requests fail, as they would without a relay. */
class OneConnection extends Agent {
  #connection: Duplex | undefined;

  constructor(connection: Duplex) {
    super({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1 });
    this.#connection = connection;
  }

  override createConnection(): Duplex {
    const connection = this.#connection;
    if (connection === undefined) throw new Error("the connection to the server has ended");
    this.#connection = undefined;
    return connection;
  }
}

function guestRequest({ method = "GET", url = "/", rawHeaders }: IncomingMessage): GuestRequest {
  const headers = headerPairs(rawHeaders);
  const hosts = headers.filter(([name]) => name.toLowerCase() === "host");
  return { method, path: url, headers, authority: hosts.length === 1 ? hosts[0]?.[1] : undefined };
}

function send({ method = "GET" }: IncomingMessage, { path, headers }: Exchange, agent: Agent): ClientRequest {
  const isFramed = headers.some(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name));
  const all: HeaderPair[] =
    isFramed || !METHODS_WITH_BODY.has(method) ? [...headers] : [...headers, ["Content-Length", "0"]];
  const outgoing = sendRequest({
    agent,
    method,
    path,
    headers: all.flat(),
    setHost: false,
    maxHeaderSize: MAX_HEAD_BYTES,
  });
  outgoing.setNoDelay(true);
  // A server may wait for the head before the sandbox sends a body.
  outgoing.flushHeaders();
  return outgoing;
}

interface Answering {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly exchange: Exchange;
}

function answer(outgoing: ClientRequest, { request, response, exchange }: Answering): void {
  outgoing.once("continue", () => response.writeContinue());
  outgoing.once("response", (answered) => {
    const { statusCode = 502, statusMessage, rawHeaders } = answered;
    exchange.answered(statusCode);
    const headers = exchange.answerHeaders(headerPairs(rawHeaders));
    response.writeHead(statusCode, statusMessage, headers.flat());
    response.flushHeaders();
    answered.once("end", () => {
      if (answered.rawTrailers.length > 0)
        response.addTrailers([...headerPairs(answered.rawTrailers)] as [string, string][]);
      response.end();
    });
    answered.once("error", () => response.destroy());
    answered.pipe(response, { end: false });
  });
  outgoing.once("error", () => {
    if (!response.headersSent) exchange.answered(null);
    // The sandbox sees what it would see without a relay: the connection ends.
    response.destroy();
    request.socket.destroy();
  });
  // A sandbox that leaves cancels its request; Node.js reports that on the response only.
  response.once("close", () => {
    if (!response.writableEnded) outgoing.destroy();
  });
}

interface Switching {
  readonly socket: Duplex;
  /** What the sandbox has already sent in the new protocol. */
  readonly head: Buffer;
  readonly exchange: Exchange;
}

/** For WebSockets and other protocols: if the server agrees, bytes flow as they are. */
function switchProtocols(outgoing: ClientRequest, { socket, head, exchange }: Switching): void {
  const begin = ({ statusCode = 502, statusMessage = "" }: IncomingMessage, headers: readonly HeaderPair[]) => {
    exchange.answered(statusCode);
    socket.write(headText(statusCode, statusMessage, exchange.answerHeaders(headers)));
  };
  outgoing.once("upgrade", (answered, upstream, first) => {
    begin(answered, headerPairs(answered.rawHeaders));
    if (first.length > 0) socket.write(first);
    if (head.length > 0) upstream.write(head);
    upstream.on("error", () => socket.destroy());
    upstream.pipe(socket);
    socket.pipe(upstream);
  });
  outgoing.once("response", (answered) => {
    // The parser has removed the framing of the body, so only the end of the connection marks its end.
    const isKept = ([name]: HeaderPair) => !/^(?:connection|content-length|transfer-encoding|keep-alive)$/i.test(name);
    begin(answered, [...headerPairs(answered.rawHeaders).filter(isKept), ["Connection", "close"]]);
    answered.once("error", () => socket.destroy());
    answered.pipe(socket);
  });
  outgoing.once("error", () => socket.destroy());
  outgoing.end();
}

function refuse(response: ServerResponse, { status, text }: RefusedRequest): void {
  response.writeHead(status, {
    "content-type": "text/plain",
    "content-length": Buffer.byteLength(text),
    connection: "close",
  });
  response.end(text);
}

function headText(status: number, message: string, headers: readonly HeaderPair[]): string {
  return [`HTTP/1.1 ${status} ${message}`, ...headers.map(([name, value]) => `${name}: ${value}`), "", ""].join("\r\n");
}

/** Ends a connection, and drops it if the other side does not end it, too. */
function endSoon(stream: Duplex): void {
  stream.end();
  const stop = systemClock.schedule(LINGER_MS, () => stream.destroy());
  stream.once("close", stop);
}

function endOf(stream: Duplex): Promise<void> {
  return new Promise((resolve) => finished(stream, () => resolve()));
}
