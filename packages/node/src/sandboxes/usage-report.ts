import type { Usage } from "@sandpiper/protocol";
import type { MomentaryUsage } from "../auth/momentary-usage.ts";
import { type Account, NO_USAGE, sumUsage } from "../auth/quota.ts";
import type { DurableUsage, SandboxRecord } from "../records/sandbox-record.ts";
import { usageOf } from "./capacity.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";

export interface UsageReportOptions {
  readonly registry: Pick<SandboxRegistry, "current" | "usage">;
  readonly momentary: MomentaryUsage;
  /** Lists the sandboxes of all nodes and those at rest; undefined on a standalone node. */
  readonly saved?: { list(): Promise<readonly SandboxRecord[]> } | undefined;
}

export type UsageOf = (account: Pick<Account, "kind" | "name">) => Usage;

/** Reports what keys and tenants use: durable things in the whole cluster, momentary ones on this node. */
export class UsageReport {
  readonly #options: UsageReportOptions;

  constructor(options: UsageReportOptions) {
    this.#options = options;
  }

  async read(): Promise<UsageOf> {
    const { registry, momentary, saved } = this.#options;
    if (saved === undefined) return (account) => ({ ...registry.usage(payerOf(account)), ...momentary.of(account) });
    // This node's own records are newer than their states in the store.
    const records = new Map((await saved.list()).map((record) => [record.id, record]));
    for (const record of registry.current()) records.set(record.id, record);
    const all = [...records.values()];
    const [keys, tenants] = [usageBy(all, "keyId"), usageBy(all, "tenant")];
    return (account) => {
      const durable = (account.kind === "key" ? keys : tenants).get(account.name) ?? NO_USAGE;
      return { ...durable, ...momentary.of(account) };
    };
  }

  /** What each tenant uses of this node. */
  ofTenantsHere(): ReadonlyMap<string, Usage> {
    const { registry, momentary } = this.#options;
    const names = new Set(registry.current().map(({ tenant }) => tenant));
    const usageHere = (tenant: string) => ({
      ...registry.usage({ tenant }),
      ...momentary.of({ kind: "tenant", name: tenant }),
    });
    return new Map([...names].map((name) => [name, usageHere(name)]));
  }
}

function payerOf({ kind, name }: Pick<Account, "kind" | "name">) {
  return kind === "key" ? { keyId: name } : { tenant: name };
}

function usageBy(records: readonly SandboxRecord[], field: "keyId" | "tenant"): ReadonlyMap<string, DurableUsage> {
  const groups = Map.groupBy(records, (record) => record[field]);
  return new Map([...groups].map(([name, group]) => [name, sumUsage(group.map(usageOf))]));
}
