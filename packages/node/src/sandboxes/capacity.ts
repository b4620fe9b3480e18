import { SandboxError } from "@sandpiper/core";
import type { Principal } from "../auth/principal.ts";
import { requireQuota } from "../auth/quota.ts";
import type { QuotaReservation, SharedQuotas } from "../cluster/shared-quotas.ts";
import type { SandboxRecord, Usage } from "../records/sandbox-record.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";

export interface CapacityOptions {
  readonly registry: SandboxRegistry;
  /** Quotas across the nodes of a cluster; undefined on a standalone node. */
  readonly quotas: Pick<SharedQuotas, "reserve" | "ended" | "hold"> | undefined;
  /** 0: no limit. */
  readonly maxSandboxes: number;
  /** Of the records of one tenant. 0: no limit. */
  readonly maxRecordBytes: number;
}

/** Trimming reads all records of the tenant's destroyed sandboxes, so not every creation does it. */
const RECORDS_PER_TRIM = 50;

const none: Usage = { sandboxes: 0, memoryMib: 0, vcpuCount: 0 };

/** Enforces the node's sandbox limit and the quotas of keys. Creations count before their records exist. */
export class Capacity {
  readonly #options: CapacityOptions;
  readonly #reserved = new Map<string, Usage>();
  /** How many sandboxes of each tenant were reserved since its last trim. */
  readonly #untrimmed = new Map<string, number>();
  #reservedSandboxes = 0;
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
  reserve(
    principal: Principal,
    { memoryMib, vcpuCount, keyId }: Pick<SandboxRecord, "memoryMib" | "vcpuCount" | "keyId">,
    count: number,
  ): Disposable {
    const { registry, maxSandboxes } = this.#options;
    this.#requireRecordRoom(principal.tenant);
    const owner = principal.kind === "key" ? principal.keyId : keyId;
    const sandboxes = registry.runningCount + this.#booting + this.#reservedSandboxes;
    if (maxSandboxes > 0 && sandboxes + count > maxSandboxes) throw limitReached(maxSandboxes);
    const wanted = { sandboxes: count, memoryMib: memoryMib * count, vcpuCount: vcpuCount * count };
    requireQuota(principal, sum(registry.usage(owner), this.#reserved.get(owner) ?? none), wanted);
    return this.#add(owner, wanted);
  }

  /** Reserves room for one sandbox across the cluster; undefined where no shared quota applies. */
  async reserveShared(
    principal: Principal,
    { memoryMib, vcpuCount }: Pick<SandboxRecord, "memoryMib" | "vcpuCount">,
  ): Promise<QuotaReservation | undefined> {
    const { quotas } = this.#options;
    if (quotas === undefined || principal.kind !== "key") return undefined;
    return await quotas.reserve(principal, { sandboxes: 1, memoryMib, vcpuCount });
  }

  /** Counts a sandbox that has moved here from another node. */
  hold({ keyId, id, memoryMib, vcpuCount }: SandboxRecord): void {
    this.#options.quotas?.hold(keyId, id, { sandboxes: 1, memoryMib, vcpuCount });
  }

  ended({ keyId, id }: SandboxRecord): void {
    this.#options.quotas?.ended(keyId, id);
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

  #add(owner: string, wanted: Usage): Disposable {
    this.#change(owner, wanted);
    let isReserved = true;
    return {
      [Symbol.dispose]: () => {
        if (isReserved) this.#change(owner, negative(wanted));
        isReserved = false;
      },
    };
  }

  #change(owner: string, by: Usage): void {
    this.#reservedSandboxes += by.sandboxes;
    const next = sum(this.#reserved.get(owner) ?? none, by);
    if (next.sandboxes === 0) this.#reserved.delete(owner);
    else this.#reserved.set(owner, next);
  }
}

function sum(a: Usage, b: Usage): Usage {
  return {
    sandboxes: a.sandboxes + b.sandboxes,
    memoryMib: a.memoryMib + b.memoryMib,
    vcpuCount: a.vcpuCount + b.vcpuCount,
  };
}

function negative({ sandboxes, memoryMib, vcpuCount }: Usage): Usage {
  return { sandboxes: -sandboxes, memoryMib: -memoryMib, vcpuCount: -vcpuCount };
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
