import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { decodeText, type Sandbox } from "@sandpiper/sdk";
import { expect } from "vitest";

export const PORT = 8000;
const server = readFileSync(new URL("guest-server.py", import.meta.url));

/** Starts the server of these tests inside a sandbox; resolves when it listens. */
export async function startServer(sandbox: Sandbox): Promise<void> {
  await sandbox.files.write("/tmp/server.py", server);
  const process_ = await sandbox.start(`exec python3 /tmp/server.py ${PORT}`);
  const ended = process_.wait().then(async () => {
    throw new Error(
      `the server ended: ${await Array.fromAsync(decodeText(process_.stderr)).then((all) => all.join(""))}`,
    );
  });
  ended.catch(() => {});
  const ports = async () => (await sandbox.ports()).map(({ port }) => port);
  // Emulated processors take long to load Python.
  await Promise.race([expect.poll(ports, { timeout: 120_000, interval: 250 }).toContain(PORT), ended]);
  process_.detach();
}

/** A visitor of one preview, at the address of a node. */
export class Visitor {
  readonly #url: URL;
  readonly #host: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, { id }: Pick<Sandbox, "id">, headers: Readonly<Record<string, string>>) {
    this.#url = new URL(url);
    this.#host = `${PORT}-${id}.localhost:${this.#url.port}`;
    this.#headers = headers;
  }

  async open(path: string, body?: Uint8Array): Promise<IncomingMessage> {
    const { hostname, port } = this.#url;
    const headers = { host: this.#host, ...this.#headers, ...(body && { "content-length": body.length }) };
    const method = body === undefined ? "GET" : "POST";
    const outgoing = request({ hostname, port, path, method, headers, agent: false });
    outgoing.end(body);
    return ((await once(outgoing, "response")) as [IncomingMessage])[0];
  }

  async get(path: string, body?: Uint8Array): Promise<{ status: number; text: string }> {
    const incoming = await this.open(path, body);
    return { status: incoming.statusCode ?? 0, text: String(Buffer.concat(await incoming.toArray())) };
  }

  async hashOf(path: string): Promise<string> {
    const hash = createHash("sha256");
    for await (const bytes of await this.open(path)) hash.update(bytes);
    return hash.digest("hex");
  }

  async echo(message: string): Promise<string> {
    const { hostname, port } = this.#url;
    const handshake = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    const headers = {
      host: this.#host,
      ...this.#headers,
      ...handshake,
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    };
    const outgoing = request({ hostname, port, path: "/", headers, agent: false }).end();
    const [, socket] = (await once(outgoing, "upgrade")) as [IncomingMessage, Socket];
    // One text frame of less than 126 bytes, masked with zeros.
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | message.length, 0, 0, 0, 0]), Buffer.from(message)]));
    let received = Buffer.alloc(0);
    while (received.length < message.length + 2) received = Buffer.concat([received, (await once(socket, "data"))[0]]);
    socket.destroy();
    return received.subarray(2).toString();
  }
}
