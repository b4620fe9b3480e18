import { McpServer } from "@modelcontextprotocol/server";
import manifest from "../package.json" with { type: "json" };
import { INSTRUCTIONS } from "./instructions.ts";
import { registerFileResources } from "./resources/file-resources.ts";
import { registerProcessResources } from "./resources/process-resources.ts";
import type { McpSession } from "./session/mcp-session.ts";
import { registerTool } from "./tool/register-tool.ts";
import { tools } from "./tools/tool-table.ts";

/**
 * A server of one session, to be connected to a transport. It owns nothing: a transport that wants a server for each
 * request makes as many as it likes of the same session, and whoever made the session disposes of it.
 */
export function createMcpServer(session: McpSession): McpServer {
  const server = new McpServer(
    { name: "sandpiper", title: "Sandpiper", version: manifest.version },
    { instructions: INSTRUCTIONS },
  );
  for (const tool of tools) registerTool(server, tool, session);
  registerFileResources(server, session);
  registerProcessResources(server, session);
  return server;
}
