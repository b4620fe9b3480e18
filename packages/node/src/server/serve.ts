import { once } from "node:events";
import { createServer, type Server, type ServerOptions } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import { type Clock, systemClock } from "@sandpiper/core";
import { answerBadTarget } from "./answer-bad-target.ts";
import { answerClientError } from "./answer-client-error.ts";
import { explainListenError } from "./listen-error.ts";
import { readTlsFiles, type TlsFiles } from "./tls-files.ts";

/** A Hono app is one. */
interface FetchHandler {
  fetch(request: Request, env: unknown): Response | Promise<Response>;
}

export interface ServeOptions {
  readonly app: FetchHandler;
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  readonly tls?: TlsFiles | undefined;
  /** Called before the first connection: the place to listen for "upgrade". */
  readonly onUpgradeServer?: ((server: Server) => void) | undefined;
  /** How long a client may take to send the head of a request. */
  readonly headersTimeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

interface CloseOptions {
  /** How long requests under way may go on. */
  readonly graceMs: number;
}

export interface Serving {
  readonly url: string;
  readonly server: Server;
  /** Stops accepting, drops idle connections, waits for requests under way, and then cuts what is left. */
  close(options: CloseOptions): Promise<void>;
}

/** Longer than the 60 s after which common proxies give up idle connections: the side that closes last loses nothing. */
const KEEP_ALIVE_MS = 65_000;
const HEADERS_TIMEOUT_MS = 15_000;

export async function serve(options: ServeOptions): Promise<Serving> {
  const { app, host, port, tls, clock = systemClock, headersTimeoutMs = HEADERS_TIMEOUT_MS } = options;
  const limits: ServerOptions = {
    headersTimeout: headersTimeoutMs,
    // Uploads take as long as they take; they are for those who showed a credential in the head.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(headersTimeoutMs, 5000),
    maxHeaderSize: 16 * 1024,
  };
  const listener = getRequestListener((request, env) => app.fetch(request, env), { errorHandler: answerBadTarget });
  const server =
    tls === undefined
      ? createServer(limits, listener)
      : createTlsServer({ ...limits, ...(await readTlsFiles(tls)), minVersion: "TLSv1.2" }, listener);
  server.on("clientError", answerClientError);
  const connections = new Connections(server);
  options.onUpgradeServer?.(server);
  try {
    server.listen({ host, port });
    await once(server, "listening");
  } catch (thrown) {
    throw explainListenError(thrown, { host, port });
  }
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://${reachableHost(host)}:${taken}`,
    server,
    close: ({ graceMs }) => connections.close(graceMs, clock),
  };
}

/** Knows every open connection, also those that became something else than HTTP. */
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
      const cut = () => this.#open.forEach((socket) => void socket.destroy());
      const forget = clock.schedule(graceMs, cut);
      this.#server.close(() => {
        forget();
        resolve();
      });
    });
    return this.#closed;
  }
}

/** Something to connect to, where the server listens on every address. */
function reachableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
