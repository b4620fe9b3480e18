import { type CallToolResult, Client as McpClient } from "@modelcontextprotocol/client";
import { InMemoryTransport } from "@modelcontextprotocol/server";
import { Client } from "@sandpiper/sdk";
import { createMemoryServer } from "@sandpiper/sdk/testing";
import { expect, onTestFinished } from "vitest";
import { createMcpServer } from "../create-mcp-server.ts";
import { McpSession, type McpSessionOptions } from "../session/mcp-session.ts";

export interface Answer {
  readonly isError: boolean;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a tool answers is checked by its output schema
  readonly structured: any;
}

/** A session with an in-memory node, and its MCP client. */
export async function connectMcp(options: Partial<McpSessionOptions> = {}) {
  const node = createMemoryServer();
  const client = new Client(node.clientOptions);
  const session = new McpSession({ client, ...options });
  const server = createMcpServer(session);
  const mcp = new McpClient({ name: "test", version: "1.0.0" });
  const [near, far] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(far), mcp.connect(near)]);
  onTestFinished(async () => {
    await mcp.close();
    await session[Symbol.asyncDispose]();
    client.close();
  });
  const call = async (name: string, input: Record<string, unknown> = {}) =>
    answerOf((await mcp.callTool({ name, arguments: input })) as CallToolResult);
  const refusal = async (name: string, input?: Record<string, unknown>) => {
    const { isError, text } = await call(name, input);
    expect(isError, text).toBe(true);
    return text;
  };
  return { node, client, session, mcp, call, refusal };
}

export function answerOf(result: CallToolResult): Answer {
  const text = result.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
  return { isError: result.isError === true, text, structured: result.structuredContent };
}
