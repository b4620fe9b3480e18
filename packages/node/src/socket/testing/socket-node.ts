import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, Provider } from "@sandpiper/core";
import type { AuditEntry, CreateKeyBody, SandboxResource } from "@sandpiper/protocol";
import { pino } from "pino";
import { actorOf } from "../../auth/principal.ts";
import { parseNodeConfig } from "../../config/load-node-config.ts";
import type { NodeConfig } from "../../config/node-config.ts";
import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";
import { testDomain } from "../../testing/test-domain.ts";
import { attachSockets } from "../../upgrade/attach-sockets.ts";
import { type ConnectOptions, TestClient } from "./test-client.ts";

export interface SocketNodeOptions {
  readonly provider: Provider;
  readonly clock?: Clock;
  readonly corsOrigins?: readonly string[];
}

/** Starts a node with WebSockets only, on a free port. */
export async function startSocketNode({ provider, clock, corsOrigins }: SocketNodeOptions) {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-socket-"));
  // The configuration's schema does not allow the mock provider.
  const config = { ...parseNodeConfig({ home }), defaultProvider: provider.name } as NodeConfig;
  const parts = testDomain(config, { providers: [provider], onError: () => {} });
  const { sandboxes, access, registry, phase, authenticator, keys } = parts;
  const audit: Omit<AuditEntry, "id" | "at">[] = [];
  const auditing = { written: Promise.resolve() };
  const server = createServer();
  const sockets = attachSockets(server, {
    ...parts,
    audit: {
      note: async ({ principal, address, ...entry }) => {
        const actor = principal === undefined ? null : actorOf(principal);
        audit.push({ ...entry, actor, tenant: principal?.tenant ?? null });
        await auditing.written;
      },
    },
    logger: pino({ level: "silent" }),
    corsOrigins,
    clock,
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const clients: TestClient[] = [];

  const client = (path: string, options: ConnectOptions = { credential: ownerKey }): TestClient => {
    const connected = new TestClient(`ws://127.0.0.1:${port}${path}`, options);
    clients.push(connected);
    return connected;
  };
  const makeKey = (body: Partial<CreateKeyBody> = {}) => keys.create({ name: "test", ...body });
  const ownerKey = makeKey().key;
  const owner = authenticator.authenticate(ownerKey);
  return {
    ...parts,
    audit,
    /** Set `written` to delay when entries count as written. */
    auditing,
    port,
    owner,
    ownerKey,
    makeKey,
    sockets,
    /** Connects as the owner by default. */
    client,
    /** Connects to `/v1/socket`, and sends a message. */
    async connect(message: object | string, options?: ConnectOptions): Promise<TestClient> {
      const connected = client("/v1/socket", options);
      await connected.send(message);
      return connected;
    },
    async createSandbox(): Promise<{
      readonly resource: SandboxResource;
      readonly token: string;
      readonly live: LiveSandbox;
    }> {
      const resource = await sandboxes.create(owner, {});
      return { resource, token: resource.token ?? "", live: access.open(owner, resource.id, { readOnly: false }) };
    },
    beginStopping(): void {
      phase.stop();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      for (const client of clients) client.terminate();
      await sockets.close();
      server.closeAllConnections();
      server.close();
      for (const { id } of parts.records.live()) await sandboxes.remove(owner, id).catch(() => {});
      registry.release();
      await parts.pool.close();
      parts.database[Symbol.dispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export type SocketNode = Awaited<ReturnType<typeof startSocketNode>>;
