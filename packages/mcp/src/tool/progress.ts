import type { ServerContext } from "@modelcontextprotocol/server";

/** Tells the client of a call how far it is; nothing where it did not ask. Each message counts one more than the last. */
export function progressOf({ mcpReq }: ServerContext): (message: string) => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => {};
  let progress = 0;
  return (message) => {
    progress++;
    const notification = { method: "notifications/progress", params: { progressToken, progress, message } };
    // Whoever is gone is not told.
    mcpReq.notify(notification).catch(() => {});
  };
}
