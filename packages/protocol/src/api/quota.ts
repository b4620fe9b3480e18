import { z } from "zod";
import { queryFlagSchema } from "./names.ts";

export const tenantNameSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);

/** Null for no limit. */
const limit = z.int().min(0).nullable();

/**
 * Limits of a key, or of all keys of a tenant together. Those up to `maxCheckpointBytes` count across the cluster; the others
 * count on each node.
 */
export const quotaSchema = z.strictObject({
  maxSandboxes: limit,
  maxMemoryMib: limit,
  maxVcpuCount: z.number().min(0).nullable(),
  /** The sum of the sandboxes' disk sizes. */
  maxDiskMib: limit,
  maxCheckpoints: limit,
  /** The sum of the checkpoints' `sizeBytes`. */
  maxCheckpointBytes: limit,
  /** Commands and processes that callers started and that still run. */
  maxProcesses: limit,
  /** Open WebSockets. */
  maxSockets: limit,
  /** Open file watches. */
  maxWatches: limit,
  /** Requests that are not answered completely. */
  maxRequests: limit,
  /** Bodies of requests in the node's memory. */
  maxBodyBytes: limit,
});

const count = z.int().min(0);

/** What a key or a tenant uses of its quota. */
export const usageSchema = z
  .strictObject({
    sandboxes: count,
    memoryMib: count,
    vcpuCount: z.number().min(0),
    diskMib: count,
    checkpoints: count,
    checkpointBytes: count,
    processes: count,
    sockets: count,
    watches: count,
    requests: count,
    bodyBytes: count,
  })
  .meta({ id: "Usage" });

export const updateTenantBodySchema = z.strictObject({ quota: quotaSchema.partial() }).meta({ id: "UpdateTenant" });

export const tenantResourceSchema = z
  .strictObject({ name: z.string(), quota: quotaSchema, usage: usageSchema.optional() })
  .meta({ id: "Tenant" });

export const tenantListSchema = z.strictObject({ items: z.array(tenantResourceSchema) }).meta({ id: "TenantList" });

/** For the lists of keys and tenants. */
export const usageQuerySchema = z
  .strictObject({
    /** Adds what each uses. In a cluster, the node reads the states of all sandboxes for this. */
    usage: queryFlagSchema,
  })
  .partial();

export type Quota = z.infer<typeof quotaSchema>;
/** Omitted limits stay as they are; null removes one. */
export type QuotaChanges = UpdateTenantBody["quota"];
export type Usage = z.infer<typeof usageSchema>;
export type UpdateTenantBody = z.infer<typeof updateTenantBodySchema>;
export type TenantResource = z.infer<typeof tenantResourceSchema>;
export type UsageQuery = z.infer<typeof usageQuerySchema>;

/** Null for every limit that is not given. */
export function completeQuota(given: QuotaChanges = {}): Quota {
  const names = Object.keys(quotaSchema.shape) as (keyof Quota)[];
  return Object.fromEntries(names.map((name) => [name, given[name] ?? null])) as Quota;
}
