import { chmod, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Tunnel } from "@sandpiper/core";
import { drained } from "../../host/write-pieces.ts";

/** Named pipes, which Windows has instead of Unix sockets, are not files. */
const PIPE_PREFIX = "//?/pipe/";

export type RelayTarget = { readonly path: string } | { readonly host: string; readonly port: number };

/** A socket on this host that forwards each connection into a machine; either direction can end alone. */
export class Relay implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Listens on a Unix socket, and replaces the one that a killed program left at the path; or on a port. */
  static async listen(target: RelayTarget, dial: () => Promise<Tunnel>): Promise<Relay> {
    const path = "path" in target ? target.path : PIPE_PREFIX;
    const isFile = !path.startsWith(PIPE_PREFIX);
    if (isFile) await rm(path, { force: true });
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    const relay = new Relay(server);
    server.on("connection", (socket) => void relay.#serve(socket, dial));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(target, resolve);
    });
    // A client of this socket is root in the machine.
    if (isFile) await chmod(path, 0o600);
    return relay;
  }

  /** Where it listens. */
  get address(): string | AddressInfo | null {
    return this.#server.address();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(socket: Socket, dial: () => Promise<Tunnel>): Promise<void> {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    try {
      await carry(socket, await dial());
    } catch {
      // The client sees the broken connection; the relay cannot send it an error.
      socket.destroy();
    }
  }
}

async function carry(socket: Socket, tunnel: Tunnel): Promise<void> {
  socket.once("close", () => tunnel.close());
  if (socket.destroyed) tunnel.close();
  await Promise.all([carryOut(socket, tunnel), carryIn(tunnel, socket)]);
}

function carryOut(socket: Socket, tunnel: Tunnel): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.on("data", (bytes: Buffer) => {
      socket.pause();
      tunnel.write(bytes).then(() => socket.resume(), reject);
    });
    socket.once("end", () => tunnel.end().then(resolve, reject));
    socket.once("close", () => resolve());
    socket.resume();
  });
}

async function carryIn(tunnel: Tunnel, socket: Socket): Promise<void> {
  for await (const bytes of tunnel.readable) {
    if (socket.destroyed) return;
    if (!socket.write(bytes)) await drained(socket);
  }
  socket.end();
}
