import { z } from "zod";
import { instantSchema } from "./names.ts";

/**
 * `sandboxes`: create and use sandboxes of its tenant. `read`: read-only access to them. `admin`: everything, including
 * keys, pools, webhooks and the audit log, of all tenants.
 */
const keyScopeSchema = z.enum(["sandboxes", "read", "admin"]);

const quotaSchema = z.strictObject({
  /** Null for no limit. */
  maxSandboxes: z.int().min(0).nullable(),
  maxMemoryMib: z.int().min(0).nullable(),
  maxVcpuCount: z.number().min(0).nullable(),
});

const fields = {
  name: z.string().min(1).max(128),
  /** Keys of one tenant share its sandboxes. */
  tenant: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  scopes: z.array(keyScopeSchema).min(1).max(keyScopeSchema.options.length),
  expiresAt: instantSchema.nullable(),
};

export const createKeyBodySchema = z
  .strictObject({ ...fields, quota: quotaSchema.partial() })
  .partial({ tenant: true, scopes: true, expiresAt: true, quota: true })
  .meta({ id: "CreateKey" });

export const keyResourceSchema = z
  .strictObject({
    id: z.string(),
    ...fields,
    quota: quotaSchema,
    createdAt: instantSchema,
    revokedAt: instantSchema.nullable(),
  })
  .meta({ id: "Key" });

/** The only answer that contains the key itself. */
export const createdKeySchema = keyResourceSchema.extend({ key: z.string() }).meta({ id: "CreatedKey" });

export const keyListSchema = z.strictObject({ items: z.array(keyResourceSchema) }).meta({ id: "KeyList" });

export type KeyScope = z.infer<typeof keyScopeSchema>;
export type Quota = z.infer<typeof quotaSchema>;
export type CreateKeyBody = z.infer<typeof createKeyBodySchema>;
export type KeyResource = z.infer<typeof keyResourceSchema>;
export type CreatedKey = z.infer<typeof createdKeySchema>;
