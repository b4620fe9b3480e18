import type { Usage } from "@sandpiper/protocol";
import { Gauge, type Registry } from "prom-client";

/** The tenants with the most sandboxes have their own time series; all others share one. */
const MAX_TENANTS = 50;
/** Not a valid name of a tenant. */
const OTHERS = "_other";

const measures = {
  sandboxes: "sandboxes",
  memoryMib: "memory_mib",
  vcpuCount: "cpus",
  diskMib: "disk_mib",
  checkpoints: "checkpoints",
  checkpointBytes: "checkpoint_bytes",
  processes: "processes",
  sockets: "sockets",
  watches: "watches",
  requests: "requests",
  bodyBytes: "body_bytes",
} as const satisfies Record<keyof Usage, string>;

/** Read at each scrape. */
export interface QuotaSources {
  /** What each tenant uses of this node. */
  readonly tenants: () => ReadonlyMap<string, Usage>;
  readonly host: () => readonly { readonly resource: string; readonly free: number; readonly reserve: number }[];
}

export function registerQuotaMetrics(registry: Registry, read: () => QuotaSources): void {
  const registers = [registry];
  new Gauge({
    registers,
    name: "sandpiper_tenant_usage",
    help: "What a tenant uses of this node. Tenants beyond the 50 with the most sandboxes are summed up as _other.",
    labelNames: ["tenant", "resource"],
    collect() {
      this.reset();
      const all = [...read().tenants()].toSorted(([, a], [, b]) => b.sandboxes - a.sandboxes);
      for (const [index, [name, usage]] of all.entries()) {
        const tenant = index < MAX_TENANTS ? name : OTHERS;
        for (const measure of Object.keys(measures) as (keyof Usage)[]) {
          this.inc({ tenant, resource: measures[measure] }, usage[measure]);
        }
      }
    },
  });
  new Gauge({
    registers,
    name: "sandpiper_host_free",
    help: "Free disk and memory of the host in MiB, and free process ids.",
    labelNames: ["resource"],
    collect() {
      for (const { resource, free } of read().host()) this.set({ resource }, free);
    },
  });
  new Gauge({
    registers,
    name: "sandpiper_host_reserve",
    help: "Disk and memory in MiB, and process ids, below which the node starts nothing new.",
    labelNames: ["resource"],
    collect() {
      for (const { resource, reserve } of read().host()) this.set({ resource }, reserve);
    },
  });
}
