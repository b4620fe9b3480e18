import { completeQuota, type Quota, SandboxError, type Usage } from "@sandpiper/protocol";
import type { DurableUsage } from "../records/sandbox-record.ts";

interface LimitEntry {
  readonly quota: keyof Quota;
  readonly measure: keyof Usage;
  readonly unit: string;
}

/** Limits of what outlives a node's process. They count across the cluster. */
const durableLimits = [
  { quota: "maxSandboxes", measure: "sandboxes", unit: "sandboxes" },
  { quota: "maxMemoryMib", measure: "memoryMib", unit: "MiB of memory" },
  { quota: "maxVcpuCount", measure: "vcpuCount", unit: "virtual CPUs" },
  { quota: "maxDiskMib", measure: "diskMib", unit: "MiB of disk" },
  { quota: "maxCheckpoints", measure: "checkpoints", unit: "checkpoints" },
  { quota: "maxCheckpointBytes", measure: "checkpointBytes", unit: "bytes of checkpoints" },
] as const satisfies readonly LimitEntry[];

/** Limits of what lasts no longer than a connection or a process. They count on each node. */
const momentaryLimits = [
  { quota: "maxProcesses", measure: "processes", unit: "running processes" },
  { quota: "maxSockets", measure: "sockets", unit: "open WebSockets" },
  { quota: "maxWatches", measure: "watches", unit: "open file watches" },
  { quota: "maxRequests", measure: "requests", unit: "concurrent requests" },
  { quota: "maxBodyBytes", measure: "bodyBytes", unit: "bytes of requests in progress" },
] as const satisfies readonly LimitEntry[];

export type MomentaryMeasure = (typeof momentaryLimits)[number]["measure"];

/** The key that pays for something, and its tenant. */
export interface Payer {
  readonly keyId: string;
  readonly tenant: string;
}

/** Current quotas: an update takes effect at the next question. */
export interface QuotaSource {
  keyQuota(keyId: string): Quota;
  tenantQuota(tenant: string): Quota;
}

/** A key or a tenant with its quota. */
export interface Account {
  readonly kind: "key" | "tenant";
  readonly name: string;
  readonly quota: Quota;
}

export const NO_QUOTA: Quota = completeQuota();

export const NO_USAGE: DurableUsage = {
  sandboxes: 0,
  memoryMib: 0,
  vcpuCount: 0,
  diskMib: 0,
  checkpoints: 0,
  checkpointBytes: 0,
};

export function accountsOf(quotas: QuotaSource, { keyId, tenant }: Payer): readonly Account[] {
  return [
    { kind: "key", name: keyId, quota: quotas.keyQuota(keyId) },
    { kind: "tenant", name: tenant, quota: quotas.tenantQuota(tenant) },
  ];
}

/** Whether the quota limits anything that counts across the cluster. */
export function hasDurableLimit(quota: Quota): boolean {
  return durableLimits.some(({ quota: name }) => quota[name] !== null);
}

export function sumUsage(all: readonly DurableUsage[]): DurableUsage {
  const measures = Object.keys(NO_USAGE) as (keyof DurableUsage)[];
  const total = (measure: keyof DurableUsage) => all.reduce((sum, usage) => sum + usage[measure], 0);
  return Object.fromEntries(measures.map((measure) => [measure, total(measure)])) as unknown as DurableUsage;
}

/** Fractions of a CPU are added as floating-point numbers: 0.1 + 0.2 must fit into 0.3. */
const ROUNDING = 1e-9;

/** Throws `resource_exhausted` if the demand would exceed the account's quota. What is not demanded is not checked. */
export function requireQuota(
  { kind, name, quota: quotas }: Account,
  usage: Partial<Usage>,
  wanted: Partial<Usage>,
): void {
  for (const { quota, measure, unit } of [...durableLimits, ...momentaryLimits]) {
    const limit = quotas[quota];
    const [used, demand] = [usage[measure] ?? 0, wanted[measure] ?? 0];
    if (limit === null || demand <= 0 || used + demand <= limit + ROUNDING) continue;
    throw new SandboxError("quota_exceeded", {
      message: `the ${kind} ${name} has a quota of ${limit} ${unit}: ${used} are used, and this needs ${demand} more`,
      details: { quota, used, wanted: demand, limit, [kind]: name },
    });
  }
}
