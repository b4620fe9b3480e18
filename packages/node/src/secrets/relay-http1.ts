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
import { guarded } from "./guarded.ts";
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
    request.on("error", () => {});
    response.on("error", () => {});
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
  const drop = () => guest.destroy();
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.on(event, guarded(serve, drop));
  server.on("upgrade", guarded(upgrade, drop));
  server.on("connect", drop);
  server.on("clientError", (_error, socket: Duplex) => {
    if (socket.writable) socket.end(headText(400, "Bad Request", [["Connection", "close"]]));
  });
  const ended = Promise.all([endOf(guest), upstream && endOf(upstream)]);
  // An answer may still be on its way to the sandbox when the server has ended the connection.
  const endIfIdle = () => {
    const isOver = upstream === undefined || upstream.readableEnded || upstream.destroyed;
    if (isOver && openAnswers === 0) endSoon(guest);
  };
  upstream?.once("end", endIfIdle);
  upstream?.once("close", endIfIdle);
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

  override createConnection(
    _options: object,
    done?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | undefined {
    const connection = this.#connection;
    this.#connection = undefined;
    // The agent also asks for requests that wait when the connection ends; nothing would catch what is thrown then.
    if (connection === undefined) done?.(new Error("the connection to the server has ended"), undefined as never);
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
  const drop = () => {
    // The sandbox sees what it would see without a relay: the connection ends.
    response.destroy();
    request.socket.destroy();
  };
  const deliver = (answered: IncomingMessage) => {
    const { statusCode = 502, statusMessage, rawHeaders } = answered;
    exchange.answered(statusCode);
    const headers = exchange.answerHeaders(headerPairs(rawHeaders));
    response.writeHead(statusCode, statusMessage, headers.flat());
    response.flushHeaders();
    const finish = () => {
      const trailers = exchange.answerHeaders(headerPairs(answered.rawTrailers));
      if (trailers.length > 0) response.addTrailers(trailers as [string, string][]);
      response.end();
    };
    answered.once("end", guarded(finish, drop));
    answered.on("error", drop);
    answered.pipe(response, { end: false });
  };
  outgoing.once(
    "continue",
    guarded(() => response.writeContinue(), drop),
  );
  outgoing.once("response", guarded(deliver, drop));
  outgoing.on("error", () => {
    if (!response.headersSent) exchange.answered(null);
    drop();
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
  const drop = () => socket.destroy();
  const join = (answered: IncomingMessage, upstream: Duplex, first: Buffer) => {
    begin(answered, headerPairs(answered.rawHeaders));
    if (first.length > 0) socket.write(first);
    if (head.length > 0) upstream.write(head);
    upstream.on("error", drop);
    upstream.pipe(socket);
    socket.pipe(upstream);
  };
  const decline = (answered: IncomingMessage) => {
    // The parser has removed the framing of the body, so only the end of the connection marks its end.
    const isKept = ([name]: HeaderPair) => !/^(?:connection|content-length|transfer-encoding|keep-alive)$/i.test(name);
    begin(answered, [...headerPairs(answered.rawHeaders).filter(isKept), ["Connection", "close"]]);
    answered.on("error", drop);
    answered.pipe(socket);
  };
  outgoing.once("upgrade", guarded(join, drop));
  outgoing.once("response", guarded(decline, drop));
  outgoing.on("error", drop);
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
