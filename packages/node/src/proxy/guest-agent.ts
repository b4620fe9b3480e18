import { Agent, type ClientRequest } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, SandboxError, type Tunnel } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { TunnelSocket } from "./tunnel-socket.ts";

/** Far below the calls that an agent runs at once, so that commands always find room. */
const MAX_CONNECTIONS = 256;
const MAX_IDLE_CONNECTIONS = 8;
/** Less than the 5 s after which common servers close an idle connection. */
const IDLE_MS = 4000;

export interface GuestAgentOptions {
  readonly sandboxId: SandboxId;
  readonly clock: Clock;
  /** Rejects if nothing listens on the port. */
  readonly dial: (port: number) => Promise<Tunnel>;
}

/** The HTTP connections into one sandbox. Idle ones are kept for a short time. */
export class GuestAgent extends Agent {
  readonly #options: GuestAgentOptions;
  readonly #idle = new WeakMap<Duplex, Disposable>();
  #count = 0;

  constructor(options: GuestAgentOptions) {
    super({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS, scheduling: "lifo" });
    this.#options = options;
  }

  override createConnection(
    { port }: { readonly port?: number | string | null | undefined },
    opened: (error: Error | null, socket?: Duplex) => void,
  ): undefined {
    this.connect(Number(port)).then(
      (socket) => opened(null, socket),
      (error) => opened(error),
    );
  }

  /** Throws `preview_connections`, or why the port does not answer. */
  async connect(port: number): Promise<TunnelSocket> {
    const { sandboxId, dial } = this.#options;
    if (this.#count >= MAX_CONNECTIONS) throw tooMany(sandboxId);
    this.#count++;
    try {
      const socket = new TunnelSocket(await dial(port));
      socket.once("close", () => this.#count--);
      return socket;
    } catch (thrown) {
      this.#count--;
      throw thrown;
    }
  }

  /** A guest that sends bytes without a request, or closes, loses the connection. */
  override keepSocketAlive(socket: Duplex): boolean {
    if (socket.destroyed || socket.readableEnded || socket.readableLength > 0) return false;
    const drop = () => void socket.destroy();
    const stop = this.#options.clock.schedule(IDLE_MS, drop);
    socket.on("data", drop).on("end", drop).on("close", stop);
    this.#idle.set(socket, {
      [Symbol.dispose]: () => {
        stop();
        socket.off("data", drop).off("end", drop).off("close", stop);
      },
    });
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#idle.get(socket)?.[Symbol.dispose]();
    this.#idle.delete(socket);
    super.reuseSocket(socket, request);
  }
}

function tooMany(id: SandboxId): SandboxError {
  return new SandboxError("preview_connections", {
    message: `${MAX_CONNECTIONS} connections to ports of sandbox ${id} are open`,
    details: { id, maxConnections: MAX_CONNECTIONS },
  });
}
