import type { Server } from "node:http";
import { Client } from "@sandpiper/sdk";
import { type FetchHandler, inProcessFetch } from "./in-process-fetch.ts";
import { inProcessWebSocket } from "./in-process-web-socket.ts";

export interface OwnNode {
  /** The whole interface, as clients reach it: in a cluster with what passes requests on. */
  readonly app: FetchHandler;
  /** Where WebSockets are accepted. */
  readonly server: Server;
}

/** Never looked up. */
const URL_OF_ITSELF = "http://node.invalid";

/** Makes clients of the node that runs in this process. Each may do what its key may, and is let in, limited and logged as any other. */
export function ownClients({ app, server }: OwnNode): (apiKey: string) => Client {
  const options = { url: URL_OF_ITSELF, fetch: inProcessFetch(app), webSocket: inProcessWebSocket(server) };
  return (apiKey) => new Client({ ...options, apiKey });
}
