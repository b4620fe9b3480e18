import { type Provider, systemClock } from "@sandpiper/core";
import { createTestNode } from "../../http/testing/test-node.ts";
import { NodeMetrics } from "../../telemetry/node-metrics.ts";
import { McpEndpoint } from "../mcp-endpoint.ts";
import { createFixtureServer } from "./fixture-server.ts";

export interface FixtureEndpoint extends AsyncDisposable {
  readonly url: string;
  readonly apiKey: string;
}

/** The node's `/mcp` with the fixture server instead of the product's: same authentication, sessions and transport. */
export async function startFixtureEndpoint(provider: Provider): Promise<FixtureEndpoint> {
  await using undo = new AsyncDisposableStack();
  const mcp = {
    serve: (request: Request, context: Parameters<McpEndpoint["serve"]>[1]) => endpoint.serve(request, context),
  };
  const node = undo.use(await createTestNode({ provider, deps: { mcp } }));
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const endpoint = new McpEndpoint({
    authenticator: node.authenticator,
    callers: node.callers,
    bodies: node.bodies,
    momentary: node.momentary,
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
