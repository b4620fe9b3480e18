import { z } from "zod";
import { instantSchema } from "./names.ts";
import { networkBodySchema, networkPolicySchema } from "./network.ts";
import { quotaSchema, tenantNameSchema, usageSchema } from "./quota.ts";

/**
 * `sandboxes`: create and use sandboxes of its tenant. `read`: read-only access to them. `admin`: everything, including
 * keys, pools, webhooks and the audit log, of all tenants. `metrics`: only the node's metrics.
 */
const keyScopeSchema = z.enum(["sandboxes", "read", "admin", "metrics"]);

const fields = {
  name: z.string().min(1).max(128),
  /** Keys of one tenant share its sandboxes. */
  tenant: tenantNameSchema,
  scopes: z.array(keyScopeSchema).min(1).max(keyScopeSchema.options.length),
  expiresAt: instantSchema.nullable(),
};

/** The most open network that sandboxes of the key may have; null for no limit. Its `limits` do not count. */
const maxNetworkSchema = networkBodySchema.nullable();

export const createKeyBodySchema = z
  .strictObject({ ...fields, quota: quotaSchema.partial(), maxNetwork: maxNetworkSchema })
  .partial({ tenant: true, scopes: true, expiresAt: true, quota: true, maxNetwork: true })
  .meta({ id: "CreateKey" });

/** Omitted limits stay as they are; null removes one. */
export const updateKeyBodySchema = z
  .strictObject({
    name: fields.name,
    expiresAt: fields.expiresAt,
    quota: quotaSchema.partial(),
    maxNetwork: maxNetworkSchema,
  })
  .partial()
  .meta({ id: "UpdateKey" });

export const keyResourceSchema = z
  .strictObject({
    id: z.string(),
    ...fields,
    quota: quotaSchema,
    maxNetwork: networkPolicySchema.nullable(),
    createdAt: instantSchema,
    revokedAt: instantSchema.nullable(),
    usage: usageSchema.optional(),
  })
  .meta({ id: "Key" });

/** The only answer that contains the key itself. */
export const createdKeySchema = keyResourceSchema.extend({ key: z.string() }).meta({ id: "CreatedKey" });

export const keyListSchema = z.strictObject({ items: z.array(keyResourceSchema) }).meta({ id: "KeyList" });

export type KeyScope = z.infer<typeof keyScopeSchema>;
export type CreateKeyBody = z.infer<typeof createKeyBodySchema>;
export type UpdateKeyBody = z.infer<typeof updateKeyBodySchema>;
export type KeyResource = z.infer<typeof keyResourceSchema>;
export type CreatedKey = z.infer<typeof createdKeySchema>;
