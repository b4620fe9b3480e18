import { SandboxError } from "@sandpiper/core";
import { accountsOf, NO_USAGE, type Payer, type QuotaSource, requireQuota, sumUsage } from "../auth/quota.ts";
import type { QuotaReservation } from "../cluster/account-quota.ts";
import type { SharedQuotas } from "../cluster/shared-quotas.ts";
import type { DurableUsage, SandboxRecord } from "../records/sandbox-record.ts";
import type { HostReserve } from "./host-reserve.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";

export interface CapacityOptions {
  readonly registry: SandboxRegistry;
  readonly quotas: QuotaSource;
  /** Quotas across the nodes of a cluster; undefined on a standalone node. */
  readonly shared: Pick<SharedQuotas, "reserve" | "resize" | "ended" | "hold"> | undefined;
  readonly reserve: Pick<HostReserve, "require">;
  /** 0: no limit. */
  readonly maxSandboxes: number;
  /** Of the records of one tenant. 0: no limit. */
  readonly maxRecordBytes: number;
}

/** Trimming reads all records of the tenant's destroyed sandboxes, so not every creation does it. */
const RECORDS_PER_TRIM = 50;

type Shape = Pick<SandboxRecord, "memoryMib" | "vcpuCount" | "diskMib">;
type CheckpointTotals = Pick<SandboxRecord, "checkpointCount" | "checkpointBytes">;

/**
 * Enforces the node's sandbox limit, the reserve of its host, and the quotas of keys and tenants. Creations count before their
 * records exist.
 */
export class Capacity {
  readonly #options: CapacityOptions;
  readonly #reserved = new Set<Payer & { readonly usage: DurableUsage }>();
  /** How many sandboxes of each tenant were reserved since its last trim. */
  readonly #untrimmed = new Map<string, number>();
  #booting = 0;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /** Counts a sandbox that has a record but does not run yet. */
  countBoot(): Disposable {
    this.#booting++;
    return { [Symbol.dispose]: () => void this.#booting-- };
  }

  /** Reserves room for `count` sandboxes of this shape on this node, or throws `resource_exhausted`. */
  reserve({ keyId, tenant }: Payer, { memoryMib, vcpuCount, diskMib }: Shape, count: number): Disposable {
    const { registry, maxSandboxes, reserve } = this.#options;
    reserve.require("create the sandbox");
    this.#requireRecordRoom(tenant);
    const reserved = [...this.#reserved].reduce((sum, { usage }) => sum + usage.sandboxes, 0);
    const sandboxes = registry.runningCount + this.#booting + reserved;
    if (maxSandboxes > 0 && sandboxes + count > maxSandboxes) throw limitReached(maxSandboxes);
    const size = { memoryMib: memoryMib * count, vcpuCount: vcpuCount * count, diskMib: diskMib * count };
    const usage = { ...NO_USAGE, sandboxes: count, ...size };
    this.#require({ keyId, tenant }, usage);
    const slot = { keyId, tenant, usage };
    this.#reserved.add(slot);
    return { [Symbol.dispose]: () => void this.#reserved.delete(slot) };
  }

  /** Reserves room for one sandbox across the cluster; undefined on a standalone node. */
  async reserveShared(
    { keyId, tenant }: Payer,
    { memoryMib, vcpuCount, diskMib }: Shape,
  ): Promise<QuotaReservation | undefined> {
    const usage = { ...NO_USAGE, sandboxes: 1, memoryMib, vcpuCount, diskMib };
    return await this.#options.shared?.reserve({ keyId, tenant }, usage);
  }

  /** Throws `resource_exhausted` if no further checkpoint of the sandbox fits, before its size is known. */
  requireCheckpoint(record: SandboxRecord, next: { readonly checkpointCount: number }): void {
    this.#options.reserve.require("save the sandbox", ["disk"]);
    // One byte: a quota that is used up allows no further checkpoint of any size.
    const more = { checkpoints: next.checkpointCount - record.checkpointCount, checkpointBytes: 1 };
    this.#require(record, more);
  }

  /** Records the checkpoints of a sandbox. Throws `quota_exceeded` if they are too many or too large, unless the quota does not apply. */
  async countCheckpoints(record: SandboxRecord, next: CheckpointTotals, { isLimited = false } = {}): Promise<void> {
    const { registry, shared } = this.#options;
    const more = {
      checkpoints: next.checkpointCount - record.checkpointCount,
      checkpointBytes: next.checkpointBytes - record.checkpointBytes,
    };
    if (isLimited) this.#require(record, more);
    // Recorded in the same turn, so that concurrent checkpoints do not pass the check together.
    const changed = registry.change(record.id, next);
    if (!isLimited) return shared?.hold(changed, changed.id, usageOf(changed));
    try {
      await shared?.resize(changed, changed.id, usageOf(changed));
    } catch (thrown) {
      const { checkpointCount, checkpointBytes } = record;
      registry.change(record.id, { checkpointCount, checkpointBytes });
      throw thrown;
    }
  }

  /** Throws `resource_exhausted` if the host has no room for a sandbox that exists already. */
  requireRestore(): void {
    this.#options.reserve.require("restore the sandbox");
  }

  /** Counts a sandbox that has moved here, has failed or was recovered, or that got a quota after its creation. */
  hold(record: SandboxRecord): void {
    if (record.endedAt !== null && record.checkpointCount === 0) this.ended(record);
    else this.#options.shared?.hold(record, record.id, usageOf(record));
  }

  ended(record: SandboxRecord): void {
    this.#options.shared?.ended(record, record.id);
  }

  /** Records of destroyed sandboxes give way to those of new ones. */
  #requireRecordRoom(tenant: string): void {
    const { registry, maxRecordBytes } = this.#options;
    if (maxRecordBytes === 0) return;
    const bytes = registry.recordBytes(tenant);
    if (bytes >= maxRecordBytes) throw recordLimit(maxRecordBytes);
    const added = (this.#untrimmed.get(tenant) ?? RECORDS_PER_TRIM) + 1;
    if (added > RECORDS_PER_TRIM) registry.trimDestroyed(tenant, maxRecordBytes - bytes);
    this.#untrimmed.set(tenant, added > RECORDS_PER_TRIM ? 0 : added);
  }

  #require(payer: Payer, wanted: Partial<DurableUsage>): void {
    const { quotas, registry } = this.#options;
    for (const account of accountsOf(quotas, payer)) {
      const [field, whose] =
        account.kind === "key"
          ? (["keyId", { keyId: account.name }] as const)
          : (["tenant", { tenant: account.name }] as const);
      const reserved = [...this.#reserved].filter((slot) => slot[field] === account.name).map(({ usage }) => usage);
      requireQuota(account, sumUsage([registry.usage(whose), ...reserved]), wanted);
    }
  }
}

/** What one sandbox uses of the quotas of its key and its tenant. A failed one keeps only its checkpoints. */
export function usageOf(record: SandboxRecord): DurableUsage {
  const { memoryMib, vcpuCount, diskMib, checkpointCount: checkpoints, checkpointBytes } = record;
  if (record.endedAt !== null) return { ...NO_USAGE, checkpoints, checkpointBytes };
  return { sandboxes: 1, memoryMib, vcpuCount, diskMib, checkpoints, checkpointBytes };
}

function recordLimit(limitBytes: number): SandboxError {
  return new SandboxError("record_limit", {
    message: `cannot create the sandbox: the records of this tenant's sandboxes have reached their limit of ${limitBytes} bytes`,
    details: { limitBytes },
  });
}

function limitReached(maxSandboxes: number): SandboxError {
  return new SandboxError("sandbox_limit", {
    message: `cannot create the sandbox: this node has reached its limit of ${maxSandboxes} sandboxes, including those being created`,
    details: { maxSandboxes },
  });
}
