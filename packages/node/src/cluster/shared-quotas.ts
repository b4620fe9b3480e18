import type { SandboxId } from "@sandpiper/protocol";
import { type Account, accountsOf, hasDurableLimit, type Payer, type QuotaSource } from "../auth/quota.ts";
import type { DurableUsage } from "../records/sandbox-record.ts";
import { AccountQuota, type AccountQuotaOptions, ledgerKey, type QuotaReservation } from "./account-quota.ts";

export interface SharedQuotasOptions extends AccountQuotaOptions {
  readonly quotas: QuotaSource;
}

/**
 * Enforces the quotas of keys and tenants across all nodes of a cluster. A sandbox counts from before its creation until it ends,
 * whether it runs on a node, moves to another, or is at rest. Accounts without a quota are not counted.
 */
export class SharedQuotas {
  readonly #options: SharedQuotasOptions;
  readonly #accounts = new Map<string, AccountQuota>();

  constructor(options: SharedQuotasOptions) {
    this.#options = options;
  }

  /** Throws `resource_exhausted` (reason `quota_exceeded`). */
  async reserve(payer: Payer, wanted: DurableUsage): Promise<QuotaReservation> {
    using undo = new DisposableStack();
    const shares: QuotaReservation[] = [];
    for (const account of this.#limited(payer)) {
      shares.push(undo.use(await this.#quotaOf(account).reserve(account, wanted)));
    }
    const owned = undo.move();
    return {
      bind: async (id) => {
        for (const share of shares) await share.bind(id);
      },
      [Symbol.dispose]: () => owned.dispose(),
    };
  }

  /** Changes what a sandbox uses. Throws `quota_exceeded` if the increase exceeds a quota. */
  async resize(payer: Payer, id: SandboxId, usage: DurableUsage): Promise<void> {
    for (const account of this.#limited(payer)) await this.#quotaOf(account).resize(account, id, usage);
  }

  /** Counts a sandbox that moved to this node, changed or existed before, even if it exceeds the quota. */
  hold(payer: Payer, id: SandboxId, usage: DurableUsage): void {
    for (const account of this.#limited(payer)) this.#quotaOf(account).hold(id, usage);
  }

  /** Counts the sandboxes of an account that got a quota after they were created, and that no node runs. */
  holdAtRest(account: Account, all: ReadonlyMap<SandboxId, DurableUsage>): void {
    if (all.size > 0) this.#quotaOf(account).holdAtRest(all);
  }

  /** Call when a sandbox was destroyed or has failed. */
  ended(payer: Payer, id: SandboxId): void {
    for (const account of this.#limited(payer)) this.#quotaOf(account).ended(id);
  }

  /** Forgets what an account used before it got its quota: nodes did not count since. */
  async reset(account: Pick<Account, "kind" | "name">): Promise<void> {
    await this.#options.store.delete(ledgerKey(account));
  }

  /** Resolves when all background changes are written. */
  async settled(): Promise<void> {
    await Promise.all([...this.#accounts.values()].map((account) => account.settled()));
  }

  stop(): void {
    for (const account of this.#accounts.values()) account.stop();
  }

  #limited(payer: Payer): readonly Account[] {
    return accountsOf(this.#options.quotas, payer).filter(({ quota }) => hasDurableLimit(quota));
  }

  #quotaOf(account: Pick<Account, "kind" | "name">): AccountQuota {
    const key = ledgerKey(account);
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    const quota = new AccountQuota(account, this.#options);
    this.#accounts.set(key, quota);
    return quota;
  }
}
