import { SandboxError } from "@sandpiper/core";
import type { Account } from "../auth/quota.ts";
import type { SharedQuotas } from "../cluster/shared-quotas.ts";
import type { SavedRecords } from "../handoff/saved-records.ts";
import { type Capacity, usageOf } from "../sandboxes/capacity.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";

export interface CountLimitedOptions {
  readonly registry: Pick<SandboxRegistry, "current">;
  readonly capacity: Pick<Capacity, "hold">;
  readonly quotas: Pick<SharedQuotas, "holdAtRest">;
  readonly saved: Pick<SavedRecords, "list">;
  readonly onError: (error: SandboxError) => void;
}

/** Counts the sandboxes of a key or tenant that got its first quota: until then no node counted them. */
export async function countLimited(account: Account, options: CountLimitedOptions): Promise<void> {
  const { registry, capacity, quotas, saved, onError } = options;
  const field = account.kind === "key" ? "keyId" : "tenant";
  for (const record of registry.current()) if (record[field] === account.name) capacity.hold(record);
  try {
    const records = (await saved.list()).filter((record) => record[field] === account.name && record.endedAt === null);
    quotas.holdAtRest(account, new Map(records.map((record) => [record.id, usageOf(record)])));
  } catch (thrown) {
    onError(SandboxError.from(thrown));
  }
}
