import {
  type Account,
  accountsOf,
  type MomentaryMeasure,
  type Payer,
  type QuotaSource,
  requireQuota,
} from "./quota.ts";

export type MomentaryCounts = Readonly<Record<MomentaryMeasure, number>>;

const NOTHING: MomentaryCounts = { processes: 0, sockets: 0, watches: 0, requests: 0, bodyBytes: 0 };

/** Counts what each key and tenant uses of this node at the moment, and enforces their quotas. */
export class MomentaryUsage {
  readonly #quotas: QuotaSource;
  readonly #counts = new Map<string, Record<MomentaryMeasure, number>>();

  constructor(quotas: QuotaSource) {
    this.#quotas = quotas;
  }

  /** Counts until the result is disposed. Throws `quota_exceeded` and counts nothing if a quota is used up. */
  take(payer: Payer, measure: MomentaryMeasure, amount = 1): Disposable {
    for (const account of accountsOf(this.#quotas, payer)) {
      requireQuota(account, this.of(account), { [measure]: amount });
    }
    return this.hold(payer, measure, amount);
  }

  /** Like `take`, for something that exists already: it counts even if it exceeds a quota. */
  hold(payer: Payer, measure: MomentaryMeasure, amount = 1): Disposable {
    const accounts = accountsOf(this.#quotas, payer);
    for (const account of accounts) this.#add(account, measure, amount);
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) for (const account of accounts) this.#add(account, measure, -amount);
        isHeld = false;
      },
    };
  }

  of(account: Pick<Account, "kind" | "name">): MomentaryCounts {
    return this.#counts.get(nameOf(account)) ?? NOTHING;
  }

  #add(account: Account, measure: MomentaryMeasure, amount: number): void {
    const name = nameOf(account);
    const counts = this.#counts.get(name) ?? { ...NOTHING };
    counts[measure] += amount;
    // Keys come and go; an idle one must not take memory.
    if (Object.values(counts).every((count) => count === 0)) this.#counts.delete(name);
    else this.#counts.set(name, counts);
  }
}

function nameOf({ kind, name }: Pick<Account, "kind" | "name">): string {
  return `${kind} ${name}`;
}
