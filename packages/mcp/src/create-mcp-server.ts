import { McpServer } from "@modelcontextprotocol/server";
import manifest from "../package.json" with { type: "json" };
import { registerFileResources } from "./resources/file-resources.ts";
import { registerProcessResources } from "./resources/process-resources.ts";
import type { McpSession } from "./session/mcp-session.ts";
import { registerTool } from "./tool/register-tool.ts";
import { tools } from "./tools/tool-table.ts";

/** A model reads this once, before the tools. */
const INSTRUCTIONS = `Runs commands and code in sandboxes: isolated Linux machines that keep files and processes between calls.
Omit sandbox_id to use the session's default sandbox; it is created on first use and destroyed when the session ends.
Use run_command for commands that end by themselves, and start_process with read_process_output for servers and long jobs.
Sandboxes have no network unless they were created with one.
Take a checkpoint before a risky change; restore_sandbox returns to it, and fork_sandbox creates a copy to experiment in.`;

/**
 * Creates a server for one session, to be connected to a transport. A transport may create several servers for the same
 * session. The caller disposes of the session.
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
