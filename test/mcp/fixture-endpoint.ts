import { systemClock } from "@sandpiper/core";
import { MockProvider } from "@sandpiper/providers";
import { createTestNode } from "../../packages/node/src/http/testing/test-node.ts";
import { McpEndpoint } from "../../packages/node/src/mcp/mcp-endpoint.ts";
import { NodeMetrics } from "../../packages/node/src/telemetry/node-metrics.ts";
import { createFixtureServer } from "./fixture-server.ts";

export interface FixtureEndpoint extends AsyncDisposable {
  readonly url: string;
  readonly apiKey: string;
}

/** The node's `/mcp` with the fixture in place of the product: the same admission, sessions and transport. */
export async function startFixtureEndpoint(): Promise<FixtureEndpoint> {
  await using undo = new AsyncDisposableStack();
  const mcp = {
    serve: (request: Request, context: Parameters<McpEndpoint["serve"]>[1]) => endpoint.serve(request, context),
  };
  const node = undo.use(await createTestNode({ provider: new MockProvider(), deps: { mcp } }));
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const endpoint = new McpEndpoint({
    authenticator: node.authenticator,
    converse: () => ({ createServer: createFixtureServer, async [Symbol.asyncDispose]() {} }),
    audit: node.audit,
    metrics: new NodeMetrics(),
    logger: silent,
    corsOrigins: [],
    bodyLimitBytes: 1024 * 1024,
    knownHosts: [],
    maxSessions: 100,
    idleMs: 60_000,
    clock: systemClock,
  });
  const listening = undo.use(await node.listen());
  undo.defer(() => endpoint.close());
  const owned = undo.move();
  return { url: listening.url, apiKey: node.owner, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
