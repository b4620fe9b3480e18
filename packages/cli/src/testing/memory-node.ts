import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Client } from "@sandpiper/sdk";
import { createMemoryServer } from "@sandpiper/sdk/testing";

const program = join(import.meta.dirname, "../../bin/sandpiper");

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

/** The SDK's in-memory server on a port, for the program as a user runs it; it lists itself and a node without a URL. */
export async function startMemoryNode() {
  const memory = createMemoryServer();
  const { clientOptions } = memory;
  const drains: unknown[] = [];
  const answer = async (request: IncomingMessage): Promise<Response> => {
    const body = Buffer.concat(await request.toArray());
    if (request.url === "/v1/nodes") return Response.json({ items: [node(true), node(false)] });
    if (request.url === "/v1/nodes/drain") {
      drains.push(JSON.parse(body.toString()));
      return new Response(null, { status: 204 });
    }
    const { method = "GET", url = "/", headers } = request;
    const init = { method, headers: headers as Record<string, string>, ...(body.length > 0 ? { body } : {}) };
    return clientOptions.fetch(`http://memory${url}`, init);
  };
  const server = createServer(async (request, response) => {
    const answered = await answer(request);
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    response.end(Buffer.from(await answered.arrayBuffer()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const env = {
    ...process.env,
    SANDPIPER_URL: `http://127.0.0.1:${port}`,
    SANDPIPER_API_KEY: clientOptions.apiKey,
  };
  return {
    memory,
    client: new Client(clientOptions),
    drains,
    run: (...argv: string[]): Promise<RunResult> =>
      new Promise((resolve) => {
        const child = execFile(program, argv, { env }, (_, stdout, stderr) =>
          resolve({ stdout, stderr, exitCode: child.exitCode ?? -1 }),
        );
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function node(isThisNode: boolean) {
  const at = "2026-01-01T00:00:00.000Z";
  const state = { isAlive: true, isDraining: false, isThisNode, sandboxes: 2, version: "0.1.0" };
  const url = isThisNode ? "http://127.0.0.1:4747" : null;
  return { id: crypto.randomUUID(), url, startedAt: at, seenAt: at, ...state };
}
