import { Client as McpClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { ClusterBed } from "../cluster/cluster-bed.ts";

async function connect(url: string, apiKey: string) {
  const requestInit = { headers: { authorization: `Bearer ${apiKey}` } };
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit });
  const client = new McpClient({ name: "test", version: "1" });
  await client.connect(transport);
  return { client, transport, session: transport.sessionId as string };
}

async function statusAt(url: string, apiKey: string, session: string): Promise<number> {
  const headers = { authorization: `Bearer ${apiKey}`, "mcp-session-id": session, accept: "text/event-stream" };
  const response = await fetch(`${url}/mcp`, { headers });
  await response.body?.cancel();
  return response.status;
}

describe("MCP on a cluster", () => {
  it("keeps each session on its node and reaches the sandboxes of all nodes", { timeout: 90_000 }, async () => {
    await using bed = await ClusterBed.start({ store: "file" });
    const [first] = bed.nodes;
    if (first === undefined) throw new Error("a cluster has nodes");
    await using elsewhere = new Client({ url: first.url, apiKey: first.apiKey });
    const { id: sandbox_id } = await elsewhere.sandboxes.create();
    const agents = await Promise.all(bed.nodes.map(() => connect(bed.url, first.apiKey)));
    for (const { client } of agents) {
      for (let turn = 0; turn < 5; turn++) {
        const call = { name: "run_command", arguments: { sandbox_id, command: "echo hello" } };
        const { structuredContent, content } = await client.callTool(call);
        expect(structuredContent, JSON.stringify(content)).toMatchObject({ stdout: "hello\n" });
      }
    }
    const homes = await Promise.all(
      agents.map(async ({ session }) => {
        const found = await Promise.all(bed.nodes.map(({ url }) => statusAt(url, first.apiKey, session)));
        return found.flatMap((status, index) => (status === 404 ? [] : [index]));
      }),
    );
    // Each session is on one node, and not all are on the same node.
    expect(homes.map(({ length }) => length)).toEqual([1, 1, 1]);
    expect(new Set(homes.flat()).size).toBeGreaterThan(1);
    for (const { client, transport } of agents) {
      await transport.terminateSession();
      await client.close();
    }
  });
});
