import type { PoolResource } from "@sandpiper/protocol";
import { Counter, Gauge, type Registry } from "prom-client";

const labelNames = ["provider", "image", "memory_mib", "vcpu_count", "disk_mib", "max_processes"] as const;

const gauges = {
  target: "Instances to be kept ready.",
  ready: "Instances that are ready and belong to nobody yet.",
  booting: "Instances that are being made ready.",
} as const;

const counters = {
  hits: "Sandboxes that got a ready instance.",
  misses: "Sandboxes that had to boot their own.",
  failures: "Boots of the pool that failed.",
} as const;

/** What the pools say of themselves at each scrape, by everything that shapes their instances. */
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
        // The pool is the one who counts; this only repeats it.
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
