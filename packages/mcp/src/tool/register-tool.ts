import type { CallToolResult, McpServer, ServerContext } from "@modelcontextprotocol/server";
import type { McpSession } from "../session/mcp-session.ts";
import type { Tool } from "./tool.ts";
import { toolError } from "./tool-error.ts";

/** Registers a tool. Every error becomes an answer that the model can act on. */
export function registerTool(server: McpServer, tool: Tool, session: McpSession): void {
  const { name, title, description, annotations, input, output } = tool;
  const config = { title, description, annotations, inputSchema: input, outputSchema: output };
  server.registerTool(name, config, (given, context) => callTool(tool, given as never, { session, context }));
}

async function callTool(
  tool: Tool,
  input: never,
  { session, context }: { readonly session: McpSession; readonly context: ServerContext },
): Promise<CallToolResult> {
  const { signal } = context.mcpReq;
  try {
    const { text, blocks = [], structured } = await tool.run(input, { session, signal, progress: progressOf(context) });
    return { content: [{ type: "text", text }, ...blocks], structuredContent: structured };
  } catch (thrown) {
    return toolError(thrown, session.noteOf(thrown, (input as { sandbox_id?: string }).sandbox_id));
  }
}

/** Sends progress notifications for a call, if its client asked for them. The counter increases with each message. */
function progressOf({ mcpReq }: ServerContext): (message: string) => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => {};
  let progress = 0;
  return (message) => {
    progress++;
    const notification = { method: "notifications/progress", params: { progressToken, progress, message } };
    // The client may have disconnected.
    mcpReq.notify(notification).catch(() => {});
  };
}
