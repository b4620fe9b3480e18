import { completeQuota, keyResourceSchema, networkPolicySchema, type Quota, quotaSchema } from "@sandpiper/protocol";
import { z } from "zod";
import { keyResource } from "../auth/api-key.ts";
import type { KeyRecord } from "../records/key-record.ts";

export const KEYS_OBJECT = "keys.json";

/** Limits that are not set are omitted: nodes of earlier versions refuse those that they do not know. */
const storedQuotaSchema = quotaSchema.partial();

const storedKeySchema = keyResourceSchema.extend({
  hash: z.hex().length(64),
  quota: storedQuotaSchema,
  /** Omitted if there is no limit, for the same reason. */
  maxNetwork: networkPolicySchema.optional(),
});

/** The cluster's keys in the store, without their text, and the quotas of its tenants. */
export const keysDocumentSchema = z.object({
  /** Counts changes: a node refuses a version below one that it has seen. Absent in stores of earlier versions. */
  revision: z.int().default(0),
  keys: z.array(storedKeySchema),
  tenants: z.record(z.string(), storedQuotaSchema).optional(),
});

export type KeysDocument = z.infer<typeof keysDocumentSchema>;

/** The cluster's keys, oldest first, and the quotas of tenants that have one. */
export interface ClusterKeys {
  readonly keys: readonly KeyRecord[];
  readonly tenants: ReadonlyMap<string, Quota>;
}

export function documentOf({ keys, tenants }: ClusterKeys, { revision }: Pick<KeysDocument, "revision">): KeysDocument {
  const quotas = [...tenants].map(([name, quota]) => [name, storedQuota(quota)]);
  return { revision, keys: keys.map(storedKey), ...(quotas.length > 0 && { tenants: Object.fromEntries(quotas) }) };
}

export function clusterKeysOf(document: KeysDocument): ClusterKeys {
  const tenants = Object.entries(document.tenants ?? {}).map(([name, quota]) => [name, completeQuota(quota)] as const);
  return { keys: recordsOfDocument(document), tenants: new Map(tenants) };
}

function storedKey(key: KeyRecord): KeysDocument["keys"][number] {
  const { maxNetwork, ...resource } = keyResource(key);
  const limits = { quota: storedQuota(key.quota), ...(maxNetwork !== null && { maxNetwork }) };
  return { ...resource, ...limits, hash: Buffer.from(key.hash).toString("hex") };
}

function storedQuota({ maxSandboxes, maxMemoryMib, maxVcpuCount, ...rest }: Quota): Partial<Quota> {
  const set = Object.entries(rest).filter(([, limit]) => limit !== null);
  return { maxSandboxes, maxMemoryMib, maxVcpuCount, ...Object.fromEntries(set) };
}

function recordsOfDocument({ keys }: KeysDocument): readonly KeyRecord[] {
  return keys.map((key) => ({
    ...key,
    quota: completeQuota(key.quota),
    maxNetwork: key.maxNetwork ?? null,
    hash: Buffer.from(key.hash, "hex"),
    createdAt: new Date(key.createdAt),
    expiresAt: key.expiresAt === null ? null : new Date(key.expiresAt),
    revokedAt: key.revokedAt === null ? null : new Date(key.revokedAt),
  }));
}
