import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
} from "@modelcontextprotocol/server";
import { type Sandbox, SandboxError } from "@sandpiper/sdk";
import type { McpSession } from "../session/mcp-session.ts";

/** The protocol's limit for completions. */
export const MAX_COMPLETIONS = 100;

/** Collects the items of each of the session's own sandboxes; skips sandboxes that do not answer. */
export async function ofEach<Item>(
  session: McpSession,
  find: (sandbox: Sandbox) => Promise<readonly Item[]>,
): Promise<Item[]> {
  const found = await Promise.allSettled(session.own.map(find));
  return found.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
}

export async function completeSandboxId(session: McpSession, typed: string): Promise<string[]> {
  const ids: string[] = [];
  const { sandboxes } = await session.client();
  for await (const { id, state } of sandboxes.list()) {
    if (state !== "destroyed" && id.startsWith(typed)) ids.push(id);
    if (ids.length === MAX_COMPLETIONS) break;
  }
  return ids;
}

/** Reads a resource; converts errors to those of the protocol. */
export async function readResource(uri: URL, read: () => Promise<ReadResourceResult>): Promise<ReadResourceResult> {
  try {
    return await read();
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    if (error.code === "not_found" || error.code === "gone") throw new ResourceNotFoundError(uri.href, error.message);
    const isCallers = error.code === "invalid_argument" || error.code === "failed_precondition";
    const code = isCallers ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
    throw new ProtocolError(code, error.message, { reason: error.reason });
  }
}
