import { createSandboxId, type FlowRecord } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { flowRecord } from "../flows/testing/flow-record.ts";
import { NodeMetrics } from "./node-metrics.ts";

const sandboxId = createSandboxId();

async function linesOf(metrics: NodeMetrics): Promise<readonly string[]> {
  return (await metrics.render()).text.split("\n").filter((line) => line.startsWith("sandpiper_network_"));
}

function write(tenant: string, fields: Partial<FlowRecord> = {}, replaces?: number) {
  return { cursor: 1, tenant, replaces, record: flowRecord({ sandboxId, ...fields }) };
}

it("counts each connection of a tenant once, and its bytes when it has ended", async () => {
  const metrics = new NodeMetrics();
  metrics.countFlows([write("a", { endedAt: null })]);
  metrics.countFlows([write("a", { sentBytes: 5, receivedBytes: 7 }, 1), write("b", { decision: "denied", count: 3 })]);
  metrics.countFlows([write("a", { kind: "query" })]);
  expect(await linesOf(metrics)).toEqual([
    'sandpiper_network_flows_total{tenant="a",kind="flow",decision="allowed"} 1',
    'sandpiper_network_flows_total{tenant="b",kind="flow",decision="denied"} 3',
    'sandpiper_network_flows_total{tenant="a",kind="query",decision="allowed"} 1',
    'sandpiper_network_bytes_total{tenant="a",direction="sent"} 5',
    'sandpiper_network_bytes_total{tenant="a",direction="received"} 7',
    'sandpiper_network_bytes_total{tenant="b",direction="sent"} 100',
    'sandpiper_network_bytes_total{tenant="b",direction="received"} 2000',
  ]);
});

it("sums up tenants beyond the first 50", async () => {
  const metrics = new NodeMetrics();
  for (let n = 0; n < 60; n += 1) metrics.countFlows([write(`tenant-${n}`)]);
  const lines = (await linesOf(metrics)).filter((line) => line.includes("flows_total"));
  expect(lines).toHaveLength(51);
  expect(lines).toContain('sandpiper_network_flows_total{tenant="_other",kind="flow",decision="allowed"} 10');
});
