import type { PoolResource } from "@sandpiper/protocol";
import { Counter, Gauge, type Registry } from "prom-client";

const labelNames = ["provider", "image", "memory_mib", "vcpu_count", "disk_mib", "max_processes"] as const;

const gauges = {
  target: "Target size of the warm pool.",
  ready: "Started instances in the warm pool.",
  booting: "Instances that are booting for the warm pool.",
} as const;

const counters = {
  hits: "Sandboxes that got an instance from the warm pool.",
  misses: "Sandboxes that had to boot an instance.",
  failures: "Failed boots for the warm pool.",
} as const;

/** Registers the pools' own counts, labeled with everything that shapes their instances. */
export function registerPoolMetrics(registry: Registry, pools: () => readonly PoolResource[]): void {
  const registers = [registry];
  for (const [field, help] of entriesOf(gauges)) {
    new Gauge({
      registers,
      name: `sandpiper_pool_${field}`,
      help,
      labelNames,
      collect() {
        this.reset();
        for (const pool of pools()) this.set(labelsOf(pool), pool[field]);
      },
    });
  }
  for (const [field, help] of entriesOf(counters)) {
    new Counter({
      registers,
      name: `sandpiper_pool_${field}_total`,
      help,
      labelNames,
      collect() {
        // The pool does the counting.
        this.reset();
        for (const pool of pools()) this.inc(labelsOf(pool), pool[field]);
      },
    });
  }
}

function labelsOf({ key }: PoolResource): Record<(typeof labelNames)[number], string | number> {
  return {
    provider: key.provider,
    image: key.image,
    memory_mib: key.memoryMib,
    vcpu_count: key.vcpuCount,
    disk_mib: key.diskMib,
    max_processes: key.maxProcesses,
  };
}

function entriesOf<Name extends string>(texts: Readonly<Record<Name, string>>): [Name, string][] {
  return Object.entries(texts) as [Name, string][];
}
