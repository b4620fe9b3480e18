import { createMcpServer, McpSession } from "@sandpiper/mcp";
import { isLoopbackHost } from "../config/bind-check.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { Conversation } from "../mcp/http-session.ts";
import { McpEndpoint, type McpEndpointOptions } from "../mcp/mcp-endpoint.ts";
import { type OwnNode, ownClients } from "../mcp/own-client.ts";

export interface CreateMcpEndpointOptions
  extends Pick<
    McpEndpointOptions,
    "authenticator" | "callers" | "bodies" | "momentary" | "audit" | "metrics" | "logger" | "clock"
  > {
  /** This node; sessions use it as clients. */
  readonly own: OwnNode;
}

export function createMcpEndpoint(config: NodeConfig, { own, ...rest }: CreateMcpEndpointOptions): McpEndpoint {
  const { corsOrigins, bodyLimitBytes, mcp } = config;
  const clientOf = ownClients(own);
  const converse = (credential: string, origin: string): Conversation => {
    const client = clientOf(credential, origin);
    const onError = (error: Error) => rest.logger.warn({ err: error }, "could not destroy a sandbox of an MCP session");
    const session = new McpSession({ client, onError });
    return {
      createServer: () => createMcpServer(session),
      async [Symbol.asyncDispose]() {
        await session[Symbol.asyncDispose]();
        client.close();
      },
    };
  };
  const { maxSessions, idleMs } = mcp;
  return new McpEndpoint({
    ...rest,
    corsOrigins,
    bodyLimitBytes,
    converse,
    maxSessions,
    idleMs,
    knownHosts: knownHosts(config),
  });
}

/**
 * Protects a node on a loopback address from DNS rebinding. Undefined elsewhere, where the node does not know the names
 * that lead to it.
 */
function knownHosts({ host, advertiseUrl, mcp: { allowedHosts } }: NodeConfig): readonly string[] | undefined {
  if (!isLoopbackHost(host) && allowedHosts.length === 0) return undefined;
  const advertised = advertiseUrl === null ? [] : [new URL(advertiseUrl).hostname];
  return [host, ...advertised, ...allowedHosts];
}
