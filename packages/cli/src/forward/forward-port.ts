import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { SandboxError } from "@sandpiper/protocol/error";
import type { Sandbox } from "@sandpiper/sdk";
import type { Notice } from "../output/print.ts";

const HOST = "127.0.0.1";

export interface Forwarding {
  /** The port inside the sandbox. */
  readonly port: number;
  /** The port of this machine's loopback; 0 picks a free one. */
  readonly localPort: number;
}

export interface ForwardOptions extends Forwarding {
  readonly sandbox: Pick<Sandbox, "id" | "connect">;
  /** Reports connections that fail. */
  readonly notice: Notice;
  readonly signal: AbortSignal;
}

export interface OpenForwarding extends Forwarding, Disposable {
  readonly address: string;
}

/** Listens on this machine's loopback, and connects each client to a port of a sandbox. Each direction ends separately. */
export async function forwardPort(options: ForwardOptions): Promise<OpenForwarding> {
  const { port, localPort, signal, notice } = options;
  const clients = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    clients.add(client.on("error", () => {}));
    client.once("close", () => clients.delete(client));
    join(client, options).catch((thrown) => {
      client.resetAndDestroy();
      if (!signal.aborted) notice(`connection to port ${port} failed: ${SandboxError.from(thrown).message}`);
    });
  });
  await listen(server, localPort);
  const { port: bound } = server.address() as AddressInfo;
  return {
    port,
    localPort: bound,
    address: `${HOST}:${bound}`,
    [Symbol.dispose]: () => {
      server.close();
      for (const client of clients) client.destroy();
    },
  };
}

async function join(client: Socket, { sandbox, port, signal }: ForwardOptions): Promise<void> {
  await using connection = await sandbox.connect(port, { signal });
  const upload = async () => {
    for await (const bytes of client.iterator({ destroyOnReturn: false })) await connection.write(bytes);
    await connection.end();
  };
  const download = async () => {
    for await (const bytes of connection) {
      if (!client.write(bytes) && !client.destroyed) await Promise.race([once(client, "drain"), once(client, "close")]);
    }
    client.end();
  };
  // A client that closes without an end would keep the download waiting.
  client.once("close", () => connection.close());
  await Promise.all([upload(), download()]);
}

async function listen(server: Server, port: number): Promise<void> {
  try {
    server.listen(port, HOST);
    await once(server, "listening");
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    const details = { host: HOST, port };
    if (code === "EADDRINUSE") {
      const hint = "choose another one with PORT:LOCAL, or PORT:0 for a free one";
      throw new SandboxError("port_in_use", { message: `port ${port} of ${HOST} is in use`, hint, details });
    }
    if (code !== "EACCES") throw thrown;
    const hint = "choose a port of 1024 or above with PORT:LOCAL";
    throw new SandboxError("port_not_allowed", { message: `no permission to listen on port ${port}`, hint, details });
  }
}
