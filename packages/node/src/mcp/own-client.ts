import { createServer, type Server } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import { Client, type WebSocketConstructor } from "@sandpiper/sdk";
import { WebSocket } from "ws";

/** For example, a Hono app. */
interface FetchHandler {
  fetch(request: Request, bindings: object): Response | Promise<Response>;
}

export interface OwnNode {
  /** Serves REST, and forwards requests to other nodes of the cluster. */
  readonly app: FetchHandler;
  /** Accepts WebSockets. */
  readonly server: Server;
}

/**
 * Creates clients of this process's node. They are authenticated, limited and logged like any other client. They connect to
 * nothing; `origin` is only what the node takes for its own address, for example in links.
 */
export function ownClients({ app, server }: OwnNode): (apiKey: string, origin: string) => Client {
  const options = { fetch: inProcessFetch(app), webSocket: inProcessWebSocket(server) };
  return (apiKey, origin) => new Client({ ...options, url: origin, apiKey });
}

/** A `fetch` that calls the handler for any URL. As over a network, an abort makes it fail. */
export function inProcessFetch(handler: FetchHandler): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const { signal } = request;
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      const response = await Promise.race([handler.fetch(request, {}), aborted.promise]);
      if (response.body === null) return response;
      return new Response(response.body.pipeThrough(new TransformStream(), { signal }), response);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  };
}

/** WebSockets to a server of this process, over memory. They work for any address, with or without TLS. */
function inProcessWebSocket(server: Server): WebSocketConstructor {
  const parser = createServer();
  parser.on("upgrade", (request, socket, head) => server.emit("upgrade", request, socket, head));
  const connect = (): Duplex => {
    const [clientEnd, serverEnd] = duplexPair();
    parser.emit("connection", serverEnd);
    return clientEnd;
  };
  return class extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols, { createConnection: connect as never, perMessageDeflate: false });
    }
  } as unknown as WebSocketConstructor;
}
