import type { ServerMessage } from "@sandpiper/protocol";

/**
 * Undefined for an invalid message. It checks only the fields that distinguish messages, because every exec takes this
 * path and a newer node may add fields.
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
