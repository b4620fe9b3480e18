import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

interface Target {
  readonly url: string;
  readonly apiKey: string;
}

/** The official client, over HTTP. */
export async function connectHttp({ url, apiKey }: Target, mode: "legacy" | "auto" = "legacy") {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${apiKey}` } };
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit });
  await client.connect(transport);
  const call = async (name: string, args: object = {}) => {
    const { structuredContent, content, isError } = await client.callTool({ name, arguments: { ...args } });
    return {
      ...(structuredContent as Record<string, unknown>),
      isError: isError ?? false,
      text: JSON.stringify(content),
    };
  };
  return { client, transport, call, [Symbol.asyncDispose]: () => client.close() };
}

/** The status of a request in a session: 404 where there is no such session. */
export async function sessionStatus({ url, apiKey }: Target, session = ""): Promise<number> {
  const headers = { authorization: `Bearer ${apiKey}`, "mcp-session-id": session, accept: "text/event-stream" };
  const response = await fetch(`${url}/mcp`, { headers });
  await response.body?.cancel();
  return response.status;
}
