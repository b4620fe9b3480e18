import type { JSONRPCMessage, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

const INTERNAL_ERROR = -32603;
const INVALID_PARAMS = -32602;
const MAX_ISSUES = 5;

/** The MCP SDK reports parameters that its schemas refuse as an internal error; the client made the mistake. */
export function reportInvalidParams(transport: WebStandardStreamableHTTPServerTransport): void {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => send(corrected(message), options);
}

function corrected(message: JSONRPCMessage): JSONRPCMessage {
  if (!("error" in message) || message.error.code !== INTERNAL_ERROR) return message;
  const issues = issuesOf(message.error.message);
  if (issues === undefined) return message;
  const texts = issues.slice(0, MAX_ISSUES).map(({ path = [], message: text = "" }) => `${path.join(".")}: ${text}`);
  return { ...message, error: { code: INVALID_PARAMS, message: `invalid request: ${texts.join("; ")}` } };
}

interface Issue {
  readonly path?: readonly (string | number)[];
  readonly message?: string;
}

/** The SDK's message is the list of a schema's issues, as JSON; undefined for any other message. */
function issuesOf(text: string): readonly Issue[] | undefined {
  if (!text.startsWith("[")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? (value as Issue[]) : undefined;
  } catch {
    return undefined;
  }
}
