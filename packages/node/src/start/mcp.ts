import { createMcpServer, McpSession } from "@sandpiper/mcp";
import { isLoopbackHost } from "../config/bind-check.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { Conversation } from "../mcp/http-session.ts";
import { McpEndpoint, type McpEndpointOptions } from "../mcp/mcp-endpoint.ts";
import { type OwnNode, ownClients } from "../mcp/own-client.ts";

export interface CreateMcpEndpointOptions
  extends Pick<McpEndpointOptions, "authenticator" | "audit" | "metrics" | "logger" | "clock"> {
  /** This node: the sessions use it as any client does. */
  readonly own: OwnNode;
}

/** The MCP server of a node, and where it is reached. */
export function createMcpEndpoint(config: NodeConfig, { own, ...rest }: CreateMcpEndpointOptions): McpEndpoint {
  const { corsOrigins, bodyLimitBytes, mcp } = config;
  const clientOf = ownClients(own);
  const converse = (credential: string): Conversation => {
    const client = clientOf(credential);
    const onError = (error: Error) => rest.logger.warn({ err: error }, "a sandbox of an MCP session was left");
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

/** A node that only this machine reaches is what a page would get at through a name of its own; others are behind names that nobody told it. */
function knownHosts({ host, advertiseUrl, mcp: { allowedHosts } }: NodeConfig): readonly string[] | undefined {
  if (!isLoopbackHost(host) && allowedHosts.length === 0) return undefined;
  const advertised = advertiseUrl === null ? [] : [new URL(advertiseUrl).hostname];
  return [host, ...advertised, ...allowedHosts];
}
