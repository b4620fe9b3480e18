import { type Quota, SandboxError, type TenantResource, tenantNameSchema } from "@sandpiper/protocol";
import type { KeyRecord } from "../records/key-record.ts";
import { NO_QUOTA } from "./quota.ts";

/** The tenants that have a key or a quota, by name. */
export function tenantsOf(keys: Iterable<KeyRecord>, quotas: ReadonlyMap<string, Quota>): readonly TenantResource[] {
  const names = new Set(quotas.keys());
  for (const { tenant } of keys) names.add(tenant);
  return [...names].toSorted().map((name) => ({ name, quota: quotas.get(name) ?? NO_QUOTA }));
}

export function requireTenantName(name: string): void {
  if (tenantNameSchema.safeParse(name).success) return;
  throw new SandboxError("no_such_tenant", {
    message: `no such tenant: ${JSON.stringify(name.slice(0, 64))}`,
    hint: "names of tenants have 1 to 63 lowercase letters, digits and hyphens",
  });
}
