import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import { SOCKET_PROTOCOL } from "@sandpiper/protocol";
import { WebSocket, WebSocketServer } from "ws";
import { NODE_PROOF_HEADER, NodeProof } from "../../cluster/node-proof.ts";
import type { Location } from "../../handoff/locator.ts";
import { MessageSocket } from "../../socket/message-socket.ts";
import { readClientMessage, UnreadableMessage } from "../../socket/read-client-message.ts";
import { refuseUpgrade } from "../../upgrade/upgrade-request.ts";
import { SocketRelay } from "../socket-relay.ts";

const key = new Uint8Array(32);
const HERE: Location = { kind: "here", live: undefined };
const NODE_ID = "00000000-0000-4000-8000-000000000001";

export interface Owner {
  readonly url: string;
  readonly sockets: WebSocket[];
  readonly headers: IncomingHttpHeaders[];
  /** Refuses every client if set. */
  refusal: SandboxError | undefined;
  onMessage: (socket: WebSocket, data: Buffer, isBinary: boolean) => void;
  stop(): Promise<void>;
}

/** A node that relays streams, and the nodes it relays to. */
export class RelayNodes implements AsyncDisposable {
  readonly holders = new Map<string, Location>();
  /** Messages that the relaying node serves itself. */
  readonly here: string[] = [];
  /** How often it has paused reading from its client. */
  holds = 0;
  find: (sandbox: string) => Promise<Location> = async (id) => this.holders.get(id) ?? HERE;
  readonly #undo = new AsyncDisposableStack();

  /** Resolves with a client that is connected to the relaying node. */
  async connect({ clock = systemClock as Clock } = {}) {
    const { server, url } = await this.#listen();
    const acceptor = new WebSocketServer({ server });
    const proof = new NodeProof({ keys: [key], node: { id: NODE_ID, url }, clock: systemClock });
    acceptor.on("connection", (webSocket, request) => {
      const socket = new MessageSocket(webSocket, request.socket);
      const relay = new SocketRelay({
        client: {
          closed: socket.closed,
          send: (message) => socket.send(message),
          deliver: (make) => socket.deliver(make),
          close: (code, reason) => socket.close(code, reason),
          holdBack: () => {
            this.holds++;
            webSocket.pause();
            return { [Symbol.dispose]: () => webSocket.resume() };
          },
        },
        credential: "spk_client",
        requestId: "request-1",
        proof,
        clock,
        silenceMs: 1000,
      });
      socket.onMessage((data, isBinary) => {
        if (isBinary) {
          if (!relay.data(data.readUInt32BE(0), data)) this.here.push(`${data.length} bytes`);
          return;
        }
        const message = readClientMessage(data.toString());
        if (message instanceof UnreadableMessage) throw message.error;
        const text = data.toString();
        if (relay.message(message, text)) return;
        const sandbox = message.type === "open" ? message.sandbox : undefined;
        if (sandbox === undefined || this.holders.get(sandbox)?.kind === "here") return void this.here.push(text);
        const opening = { stream: message.stream, sandbox, text };
        if (relay.openAtKnownOwner(opening)) return;
        relay.open(opening, this.find(sandbox), (_, messages) => {
          for (const each of messages) this.here.push(typeof each === "string" ? each : `${each.length} bytes`);
        });
      });
    });
    const client = new WebSocket(url.replace("http", "ws"));
    this.#undo.defer(() => client.terminate());
    await once(client, "open");
    return client;
  }

  async owner(): Promise<Owner> {
    const { server, url, stop } = await this.#listen();
    const proof = new NodeProof({ keys: [key], node: { id: NODE_ID, url }, clock: systemClock });
    const acceptor = new WebSocketServer({ noServer: true, handleProtocols: () => SOCKET_PROTOCOL });
    const owner: Owner = {
      url,
      sockets: [],
      headers: [],
      refusal: undefined,
      onMessage: () => {},
      stop,
    };
    server.on("upgrade", (request, raw, head) => {
      try {
        if (owner.refusal !== undefined) throw owner.refusal;
        proof.verify(String(request.headers[NODE_PROOF_HEADER]), { method: "GET", path: request.url ?? "" });
      } catch (thrown) {
        refuseUpgrade(raw, SandboxError.from(thrown), "x");
        return;
      }
      owner.headers.push(request.headers);
      acceptor.handleUpgrade(request, raw, head, (webSocket) => {
        owner.sockets.push(webSocket);
        webSocket.on("message", (data, isBinary) => owner.onMessage(webSocket, data as Buffer, isBinary));
      });
    });
    return owner;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#undo.disposeAsync();
  }

  async #listen() {
    const server = createServer((_, response) => response.end());
    const connections = new Set<Socket>();
    server.on("connection", (connection) => connections.add(connection));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    this.#undo.defer(() => stop(server, connections));
    return {
      server,
      stop: () => stop(server, connections),
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    };
  }
}

/** Also closes WebSockets. */
async function stop(server: Server, connections: ReadonlySet<Socket>): Promise<void> {
  for (const connection of connections) connection.destroy();
  if (server.listening) await new Promise((resolve) => server.close(resolve));
}
