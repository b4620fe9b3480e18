import { createHash } from "node:crypto";

/** Of the hash that stands for a tenant: enough that no two share one, short enough for the name of a volume. */
const TENANT_DIGITS = 16;
const DEFAULT_PROJECT = "default";

/** A project as providers know it: two tenants that call theirs the same have nothing in common. */
export function tenantProject(tenant: string, project: string = DEFAULT_PROJECT): string {
  return `${prefixOf(tenant)}${project}`;
}

/** What its tenant calls a project; undefined when it is another tenant's. */
export function projectOfTenant(tenant: string, known: string): string | undefined {
  const prefix = prefixOf(tenant);
  return known.startsWith(prefix) ? known.slice(prefix.length) : undefined;
}

function prefixOf(tenant: string): string {
  return `${createHash("sha256").update(tenant).digest("hex").slice(0, TENANT_DIGITS)}-`;
}
