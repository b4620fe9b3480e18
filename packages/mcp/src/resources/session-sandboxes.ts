import type { Sandbox } from "@sandpiper/sdk";
import type { McpSession } from "../session/mcp-session.ts";

/** As many as the protocol lets a server answer. */
export const MAX_COMPLETIONS = 100;

/** What each of the session's own sandboxes has. One that cannot be asked just now, or is gone, has nothing. */
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
