import type { PoolResource } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { NodeMetrics } from "./node-metrics.ts";

const pool: PoolResource = {
  key: { provider: "gvisor", image: "host", memoryMib: 256, vcpuCount: 2, diskMib: 1024, maxProcesses: 256 },
  target: 4,
  ready: 3,
  booting: 1,
  hits: 10,
  misses: 2,
  failures: 0,
  meanWaitMs: 1,
  retryInMs: null,
};
const poolLabels = 'provider="gvisor",image="host",memory_mib="256",vcpu_count="2",disk_mib="1024",max_processes="256"';

describe("the metrics of a node", () => {
  it("have Prometheus' text format and include those of the process", async () => {
    const { contentType, text } = await new NodeMetrics().render();
    expect(contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(text).toMatch(/^process_resident_memory_bytes \d+/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
  });

  it("include histograms of creates, commands, checkpoints and requests", async () => {
    const metrics = new NodeMetrics();
    metrics.observeCreate("gvisor", 0.2, false);
    metrics.observeCreate("gvisor", 0.002, true);
    metrics.observeExec("gvisor", 0.003);
    metrics.observeCheckpoint("gvisor", 0.02);
    metrics.observeRequest({ operation: "listSandboxes", status: 200, seconds: 0.001 });
    metrics.countWebhookDelivery("given_up");
    const { text } = await metrics.render();
    const lines = text.split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        'sandpiper_create_duration_seconds_count{provider="gvisor",start="cold"} 1',
        'sandpiper_create_duration_seconds_bucket{le="0.0025",provider="gvisor",start="warm"} 1',
        'sandpiper_exec_duration_seconds_sum{provider="gvisor"} 0.003',
        'sandpiper_checkpoint_duration_seconds_count{provider="gvisor"} 1',
        'sandpiper_http_request_duration_seconds_count{operation="listSandboxes",status="200"} 1',
        'sandpiper_webhook_deliveries_total{outcome="given_up"} 1',
      ]),
    );
  });

  it("show the current sandboxes and pools at each scrape, without those that are gone", async () => {
    const metrics = new NodeMetrics();
    let sandboxes = [{ provider: "gvisor", state: "ready", count: 7 }];
    let pools = [pool];
    const quotas = { tenants: () => new Map(), host: () => [] };
    metrics.collectFrom({ sandboxes: () => sandboxes, pools: () => pools, mcpSessions: () => 0, quotas });
    for (let scrape = 0; scrape < 2; scrape++) {
      const { text } = await metrics.render();
      expect(text).toContain('sandpiper_sandboxes{provider="gvisor",state="ready"} 7');
      expect(text).toContain(`sandpiper_pool_ready{${poolLabels}} 3`);
      expect(text).toContain(`sandpiper_pool_hits_total{${poolLabels}} 10`);
    }
    sandboxes = [];
    pools = [];
    const { text } = await metrics.render();
    expect(text).not.toMatch(/^sandpiper_(sandboxes|pool_ready|pool_hits_total)\{/m);
  });

  it("are separate for two nodes in one process", async () => {
    const [one, other] = [new NodeMetrics(), new NodeMetrics()];
    one.observeExec("gvisor", 1);
    expect((await other.render()).text).not.toContain('sandpiper_exec_duration_seconds_count{provider="gvisor"}');
  });
});
