import { createServer, type Server } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import type { WebSocketConstructor } from "@sandpiper/sdk";
import { WebSocket } from "ws";

/**
 * WebSockets to a server of this process, over memory: they work whatever it listens on, with or without TLS, and open
 * no door for others.
 */
export function inProcessWebSocket(server: Server): WebSocketConstructor {
  const door = createServer();
  door.on("upgrade", (request, socket, head) => server.emit("upgrade", request, socket, head));
  const connect = (): Duplex => {
    const [own, others] = duplexPair();
    door.emit("connection", others);
    return own;
  };
  return class extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols, { createConnection: connect as never, perMessageDeflate: false });
    }
  } as unknown as WebSocketConstructor;
}
