export { createMcpServer } from "./create-mcp-server.ts";
export { McpSession, type McpSessionOptions } from "./session/mcp-session.ts";
export type { SessionLimits } from "./session/session-limits.ts";
