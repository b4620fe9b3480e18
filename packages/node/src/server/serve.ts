import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext } from "node:tls";
import { getRequestListener } from "@hono/node-server";
import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import { answerBadTarget, answerClientError, answerExpectation } from "./answer-client-error.ts";
import { type ConnectionLimitsOptions, limitConnections } from "./connection-limits.ts";
import { explainListenError } from "./listen-error.ts";

/** For example, a Hono app. */
interface FetchHandler {
  fetch(request: Request, env: unknown): Response | Promise<Response>;
}

export interface ServeOptions {
  readonly app: FetchHandler;
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly tls?: TlsFiles | undefined;
  /** Serves a request in place of the app, if it returns true. */
  readonly intercept?: Intercept | undefined;
  /** Called before the first connection, to listen for "upgrade". */
  readonly onUpgradeServer?: ((server: Server) => void) | undefined;
  /** How long a client may take to send the headers of a request. */
  readonly headersTimeoutMs?: number | undefined;
  readonly connections?: ConnectionLimitsOptions | undefined;
  readonly clock?: Clock | undefined;
}

type Intercept = (
  request: IncomingMessage,
  response: ServerResponse,
  options: { readonly expectsContinue: boolean },
) => boolean;

interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

interface CloseOptions {
  /** How long running requests may continue. */
  readonly graceMs: number;
}

export interface Serving {
  readonly url: string;
  readonly server: Server;
  /** Stops accepting, drops idle connections, waits for running requests, then closes the remaining connections. */
  close(options: CloseOptions): Promise<void>;
}

/** Longer than the 60 s after which common proxies close idle connections, so that no request meets a closed one. */
const KEEP_ALIVE_MS = 65_000;
const HEADERS_TIMEOUT_MS = 15_000;

export async function serve(options: ServeOptions): Promise<Serving> {
  const { app, host, port, tls, clock = systemClock, headersTimeoutMs = HEADERS_TIMEOUT_MS } = options;
  const limits: ServerOptions = {
    headersTimeout: headersTimeoutMs,
    // Uploads may take any time: their credential was checked with the headers.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(headersTimeoutMs, 5000),
    maxHeaderSize: 16 * 1024,
    // The listener refuses a request without it, with the usual error body.
    requireHostHeader: false,
  };
  const serveApp = getRequestListener((request, env) => app.fetch(request, env), { errorHandler: answerBadTarget });
  const expecting = new WeakSet<IncomingMessage>();
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const expectsContinue = expecting.has(request);
    if (options.intercept?.(request, response, { expectsContinue })) return;
    if (expectsContinue) response.writeContinue();
    serveApp(request, response);
  };
  const server =
    tls === undefined
      ? createServer(limits, listener)
      : createTlsServer({ ...limits, ...(await readTlsFiles(tls)), minVersion: "TLSv1.2" }, listener);
  server.on("clientError", answerClientError);
  server.on("checkExpectation", answerExpectation);
  server.on("checkContinue", (request, response) => {
    expecting.add(request);
    server.emit("request", request, response);
  });
  if (options.connections !== undefined) limitConnections(server, options.connections);
  server.prependListener("request", (request, response) => {
    // No GET needs its body, and a connection could wait for the rest of it forever.
    if (/^(GET|HEAD)$/.test(request.method ?? "") && hasBody(request)) response.setHeader("Connection", "close");
  });
  const connections = new Connections(server);
  options.onUpgradeServer?.(server);
  try {
    server.listen({ host, port });
    await once(server, "listening");
  } catch (thrown) {
    throw explainListenError(thrown, { host, port });
  }
  const { port: boundPort } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://${reachableHost(host)}:${boundPort}`,
    server,
    close: ({ graceMs }) => connections.close(graceMs, clock),
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

async function readTlsFiles({ certFile, keyFile }: TlsFiles): Promise<{ cert: Buffer; key: Buffer }> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    // Otherwise a key that does not match the certificate would only fail at the first connection.
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (thrown) {
    throw new SandboxError("bad_tls_files", {
      message: `cannot use the TLS files ${certFile} and ${keyFile}: ${(thrown as Error).message}`,
      details: { certFile, keyFile },
      cause: thrown,
    });
  }
}

/** Tracks every open connection, including upgraded ones. */
class Connections {
  readonly #server: Server;
  readonly #open = new Set<Duplex>();
  #closed: Promise<void> | undefined;

  constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket) => {
      this.#open.add(socket);
      socket.once("close", () => this.#open.delete(socket));
    });
    server.prependListener("request", (_request, response) => {
      if (this.#closed !== undefined) response.setHeader("Connection", "close");
      response.once("close", () => this.#closed !== undefined && setImmediate(() => server.closeIdleConnections()));
    });
  }

  close(graceMs: number, clock: Clock): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      const destroyAll = () => this.#open.forEach((socket) => void socket.destroy());
      const cancel = clock.schedule(graceMs, destroyAll);
      this.#server.close(() => {
        cancel();
        resolve();
      });
    });
    return this.#closed;
  }
}

/** A host that clients on this machine can connect to, also when the server listens on every address. */
function reachableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
