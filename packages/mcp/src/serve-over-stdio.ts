import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { createMcpServer } from "./create-mcp-server.ts";
import type { McpSession } from "./session/mcp-session.ts";

/** Space for the message around the content. */
const ENVELOPE_BYTES = 1024 * 1024;

export interface ServeOverStdioOptions {
  readonly session: McpSession;
  /** Ends the session before its client does. */
  readonly signal: AbortSignal;
  /** Receives errors about malformed messages and failed writes. */
  readonly onError: (error: Error) => void;
}

/**
 * Serves a session on standard input and output until the client closes its end of the input or dies. The caller then
 * disposes of the session.
 */
export async function serveOverStdio({ session, signal, onError }: ServeOverStdioOptions): Promise<void> {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const { stdin, stdout } = process;
  const ends = [
    [stdin, "end"],
    [stdin, "close"],
    [stdin, "error"],
    [stdout, "error"],
  ] as const;
  for (const [stream, event] of ends) stream.once(event, resolve);
  signal.addEventListener("abort", () => resolve(), { once: true });
  if (signal.aborted) resolve();
  // Text escaped in JSON may be six times as long.
  const maxBufferSize = ENVELOPE_BYTES + 6 * session.limits.transferBytes;
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize });
  const serving = serveStdio(() => createMcpServer(session), { transport, onerror: onError });
  try {
    await gone;
  } finally {
    for (const [stream, event] of ends) stream.off(event, resolve);
    await serving.close();
  }
}
