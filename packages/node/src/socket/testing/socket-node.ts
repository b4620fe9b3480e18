import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, Provider } from "@sandpiper/core";
import type { AuditEntry, CreateKeyBody, SandboxResource } from "@sandpiper/protocol";
import { pino } from "pino";
import { composeParts } from "../../start/domain.ts";
import { parseNodeConfig } from "../../config/load-node-config.ts";
import type { NodeConfig } from "../../config/node-config.ts";
import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";
import { attachSockets } from "../../upgrade/attach-sockets.ts";
import { TestClient } from "./test-client.ts";

export interface SocketNodeOptions {
  readonly provider: Provider;
  readonly clock?: Clock;
  readonly corsOrigins?: readonly string[];
}

export interface ConnectOptions {
  readonly credential?: string | undefined;
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** A node with nothing but its WebSockets, on a free port. */
export async function startSocketNode({ provider, clock, corsOrigins }: SocketNodeOptions) {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-socket-"));
  // The API offers no mock provider.
  const config = { ...parseNodeConfig({ home }), defaultProvider: provider.name } as NodeConfig;
  const parts = composeParts(config, { providers: [provider], onError: () => {} });
  const { service, locator, authenticator, events, keys } = parts;
  const audit: Omit<AuditEntry, "id" | "at">[] = [];
  const server = createServer();
  let isStopping = false;
  const sockets = attachSockets(server, {
    service,
    locator,
    authenticator,
    events,
    audit: { add: (entry) => audit.push(entry) },
    logger: pino({ level: "silent" }),
    isStopping: () => isStopping,
    corsOrigins,
    clock,
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const clients: TestClient[] = [];

  const makeKey = (body: Partial<CreateKeyBody> = {}) => keys.create({ name: "test", ...body });
  const ownerKey = makeKey().key;
  const owner = authenticator.authenticate(ownerKey);
  return {
    ...parts,
    audit,
    port,
    owner,
    ownerKey,
    makeKey,
    sockets,
    /** Connects as the owner by default. */
    client(path: string, options: ConnectOptions = { credential: ownerKey }): TestClient {
      const client = new TestClient(`ws://127.0.0.1:${port}${path}`, options);
      clients.push(client);
      return client;
    },
    async createSandbox(): Promise<{
      readonly resource: SandboxResource;
      readonly token: string;
      readonly live: LiveSandbox;
    }> {
      const resource = await service.create(owner, {});
      return { resource, token: resource.token ?? "", live: service.open(owner, resource.id) };
    },
    beginStopping(): void {
      isStopping = true;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      for (const client of clients) client.terminate();
      await sockets.close();
      server.closeAllConnections();
      server.close();
      for (const { id } of parts.records.live()) await service.remove(owner, id).catch(() => {});
      parts.live.release();
      await parts.pool.close();
      parts.database[Symbol.dispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export type SocketNode = Awaited<ReturnType<typeof startSocketNode>>;
