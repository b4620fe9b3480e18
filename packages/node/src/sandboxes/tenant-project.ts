import { createHash } from "node:crypto";

/** Of the tenant's hash: enough to be unique, and few enough for the name of a volume. */
const TENANT_DIGITS = 16;
const DEFAULT_PROJECT = "default";

/** The project's name for providers, which keeps projects of different tenants apart. */
export function tenantProject(tenant: string, project: string = DEFAULT_PROJECT): string {
  return `${prefixOf(tenant)}${project}`;
}

/** The tenant's name for a project; undefined if the project belongs to another tenant. */
export function projectOfTenant(tenant: string, known: string): string | undefined {
  const prefix = prefixOf(tenant);
  return known.startsWith(prefix) ? known.slice(prefix.length) : undefined;
}

function prefixOf(tenant: string): string {
  return `${createHash("sha256").update(tenant).digest("hex").slice(0, TENANT_DIGITS)}-`;
}
