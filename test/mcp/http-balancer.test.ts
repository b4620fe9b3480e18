import { describe, expect, it } from "vitest";
import { ClusterBed } from "../cluster/cluster-bed.ts";
import { connectHttp, sessionStatus } from "./http-client.ts";

describe("MCP on a cluster", () => {
  it("keeps each session on its node and reaches the sandboxes of all nodes", { timeout: 90_000 }, async () => {
    await using bed = await ClusterBed.start({ store: "file" });
    const [first] = bed.nodes;
    const { apiKey } = first;
    await using elsewhere = first.client();
    const { id: sandbox_id } = await elsewhere.sandboxes.create();
    const agents = await Promise.all(bed.nodes.map(() => connectHttp({ url: bed.url, apiKey })));
    for (const { call } of agents) {
      for (let turn = 0; turn < 5; turn++) {
        const answer = await call("run_command", { sandbox_id, command: "echo hello" });
        expect(answer, answer.text).toMatchObject({ stdout: "hello\n" });
      }
    }
    const homes = await Promise.all(
      agents.map(async ({ transport: { sessionId } }) => {
        const found = await Promise.all(bed.nodes.map(({ url }) => sessionStatus({ url, apiKey }, sessionId)));
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
