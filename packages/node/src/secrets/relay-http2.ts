import {
  type ClientHttp2Session,
  connect,
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Duplex } from "node:stream";
import { type Exchange, type GuestRequest, headerPairs, RefusedRequest } from "./exchange.ts";
import { guarded } from "./guarded.ts";
import type { RelayOptions } from "./relay-http1.ts";

const { HTTP2_HEADER_AUTHORITY, HTTP2_HEADER_HOST, HTTP2_HEADER_METHOD, HTTP2_HEADER_PATH, HTTP2_HEADER_STATUS } =
  constants;
/** Enough that a single stream is not slowed down by its window. */
const WINDOW_BYTES = 1024 * 1024;
const MAX_STREAMS = 100;

/**
 * Serves HTTP/2 on a connection of a sandbox and repeats each stream on one connection to the server. The end of either
 * connection ends the other. Resolves when both have ended.
 */
export async function relayHttp2(guest: Duplex, { upstream, admit }: RelayOptions): Promise<void> {
  const client = upstream && openClient(upstream);
  const server = performServerHandshake(guest, {
    settings: { initialWindowSize: WINDOW_BYTES, maxConcurrentStreams: MAX_STREAMS },
  });
  server.once("connect", () => server.setLocalWindowSize(WINDOW_BYTES));
  server.on("stream", async (stream, headers, flags, rawHeaders) => {
    // Errors end the stream, which is handled by its close.
    stream.on("error", () => {});
    try {
      const exchange = await admit(guestRequest(headers, rawHeaders));
      if (client === undefined || client.closed || client.destroyed)
        throw new RefusedRequest(502, "the server ended the connection");
      if (!stream.destroyed)
        relayStream(stream, { client, exchange, isEnded: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0, headers });
      else exchange.answered(null);
    } catch (thrown) {
      refuse(stream, RefusedRequest.from(thrown));
    }
  });
  await joinSessions(server, client);
}

function openClient(upstream: Duplex): ClientHttp2Session {
  const client = connect("https://relay.invalid", {
    createConnection: () => upstream,
    settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
  });
  client.once("connect", () => client.setLocalWindowSize(WINDOW_BYTES));
  return client;
}

async function joinSessions(server: ServerHttp2Session, client: ClientHttp2Session | undefined): Promise<void> {
  const ended = Promise.all([server, client].map((session) => session && endOf(session)));
  server.on("error", () => {});
  client?.on("error", () => {});
  // Streams that are under way may finish.
  client?.once("goaway", () => closeSession(server));
  client?.once("close", () => closeSession(server));
  server.once("close", () => client?.destroy());
  await ended;
}

function closeSession(session: ServerHttp2Session): void {
  if (!session.closed && !session.destroyed) session.close();
}

function guestRequest(headers: IncomingHttpHeaders, rawHeaders: readonly string[]): GuestRequest {
  const pairs = headerPairs(rawHeaders).filter(([name]) => !name.startsWith(":"));
  const hosts = pairs.filter(([name]) => name.toLowerCase() === HTTP2_HEADER_HOST).map(([, value]) => value);
  const { [HTTP2_HEADER_AUTHORITY]: authority = hosts[0] } = headers;
  return {
    method: String(headers[HTTP2_HEADER_METHOD] ?? ""),
    path: String(headers[HTTP2_HEADER_PATH] ?? ""),
    headers: pairs,
    authority: hosts.every((host) => host === authority) ? String(authority ?? "") : undefined,
  };
}

interface Streaming {
  readonly client: ClientHttp2Session;
  readonly exchange: Exchange;
  readonly headers: IncomingHttpHeaders;
  /** Whether the request has no body. */
  readonly isEnded: boolean;
}

function relayStream(stream: ServerHttp2Stream, { client, exchange, headers, isEnded }: Streaming): void {
  const pseudo = Object.entries(headers).filter(([name]) => name.startsWith(":") && name !== HTTP2_HEADER_PATH);
  const all = [
    ...pseudo,
    [HTTP2_HEADER_PATH, exchange.path],
    ...exchange.headers.map(([name, value]) => [name.toLowerCase(), value]),
  ];
  const outgoing = client.request(all.flat() as string[], { endStream: isEnded, waitForTrailers: !isEnded });
  let isAnswered = false;
  let requestTrailers: IncomingHttpHeaders = {};
  let answerTrailers: IncomingHttpHeaders = {};

  const cancel = () => {
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    outgoing.close(constants.NGHTTP2_CANCEL);
  };
  const hide = (from: IncomingHttpHeaders): IncomingHttpHeaders =>
    Object.fromEntries(exchange.answerHeaders(Object.entries(from).map(([name, value]) => [name, String(value)])));
  outgoing.on("error", () => {});
  stream.on("trailers", (trailers) => {
    requestTrailers = trailers;
  });
  outgoing.on(
    "wantTrailers",
    guarded(() => outgoing.sendTrailers(requestTrailers), cancel),
  );
  if (!isEnded) stream.pipe(outgoing);

  const deliver = (answered: IncomingHttpHeaders, flags: number, rawHeaders: readonly string[]) => {
    isAnswered = true;
    const status = Number(answered[HTTP2_HEADER_STATUS]);
    exchange.answered(status);
    if (stream.destroyed) return;
    const regular = headerPairs(rawHeaders).filter(([name]) => !name.startsWith(":"));
    const flat = [HTTP2_HEADER_STATUS, String(status), ...exchange.answerHeaders(regular).flat()];
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    stream.respond(flat, { endStream, waitForTrailers: !endStream });
    if (!endStream) outgoing.pipe(stream);
  };
  outgoing.on(
    "headers",
    guarded((more) => !stream.destroyed && stream.additionalHeaders(hide(more)), cancel),
  );
  outgoing.on("response", guarded(deliver, cancel) as never);
  outgoing.on("trailers", (trailers) => {
    answerTrailers = hide(trailers);
  });
  stream.on(
    "wantTrailers",
    guarded(() => stream.sendTrailers(answerTrailers), cancel),
  );

  outgoing.once("close", () => {
    if (!isAnswered) exchange.answered(null);
    const isBroken = outgoing.rstCode !== constants.NGHTTP2_NO_ERROR || !isAnswered;
    if (isBroken && !stream.closed) stream.close(outgoing.rstCode || constants.NGHTTP2_INTERNAL_ERROR);
  });
  stream.once("close", () => {
    if (!outgoing.closed) outgoing.close(stream.rstCode || constants.NGHTTP2_CANCEL);
  });
}

function refuse(stream: ServerHttp2Stream, { status, text }: RefusedRequest): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  stream.respond({ [HTTP2_HEADER_STATUS]: status, "content-type": "text/plain" });
  stream.end(text);
}

function endOf(session: ServerHttp2Session | ClientHttp2Session): Promise<void> {
  return session.destroyed ? Promise.resolve() : new Promise((resolve) => session.once("close", () => resolve()));
}
