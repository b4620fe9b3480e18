import type { ServerMessage } from "@sandpiper/protocol";

/**
 * Undefined when it is none. Only what the client relies on to tell messages apart is looked at: this is the path of every
 * exec, and a newer node may say more than this client knows.
 */
export function parseServerMessage(text: string): ServerMessage | undefined {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof message !== "object" || message === null) return undefined;
  const { type, stream } = message as { type?: unknown; stream?: unknown };
  const isKnown =
    typeof type === "string" && (typeof stream === "number" || (type === "error" && stream === undefined));
  return isKnown ? (message as ServerMessage) : undefined;
}
