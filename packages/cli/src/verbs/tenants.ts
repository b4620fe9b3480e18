import type { TenantResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { parseQuota, quotaOptions } from "../options/quota-options.ts";
import { jsonOption } from "../options/shared-options.ts";
import { showResult, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { usageColumns } from "../output/usage-columns.ts";
import { requireNode } from "../target/find-node.ts";

const columns: readonly Column<TenantResource>[] = [{ title: "TENANT", cell: ({ name }) => name }, ...usageColumns];

const listTenants: Verb = {
  name: "tenants ls",
  summary: "list tenants with what they use of their quotas",
  options: [jsonOption],
  async run(arguments_) {
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.tenants.list({ usage: true }) });
  },
};

const updateTenant: Verb = {
  name: "tenants update",
  summary: "change the quota that all keys of a tenant share",
  operands: ["TENANT"],
  options: [...quotaOptions, { name: "json", summary: "print the tenant as a JSON object" }],
  details: `A limit of "none" removes the limit, and 0 forbids all use. A change takes effect at once, on the other nodes of a
cluster within about a second.`,
  examples: ["sandpiper tenants update ci --max-sandboxes 100 --max-checkpoint-size 50G"],
  async run(arguments_) {
    const quota = parseQuota(arguments_);
    const client = await requireNode();
    const updated = await client.tenants.update(arguments_.operands[0] as string, { quota });
    await showResult(arguments_, { json: updated, lines: [updated.name] });
  },
};

export const tenantsVerb: Verb = {
  name: "tenants",
  summary: "manage the quotas of tenants",
  options: [],
  actions: [listTenants, updateTenant],
};
