import type { Clock } from "@sandpiper/core";
import type { AuditShare } from "./audit-rotation.ts";

const PERIOD_MS = 60_000;
/** How many refusals of a share are recorded in a period. */
const ANONYMOUS_REFUSALS = 10;
const TENANT_REFUSALS = 100;
/** Beyond it, addresses are no longer counted. */
const MAX_ADDRESSES = 10_000;

export interface RefusalSummary {
  readonly requests: number;
  readonly addresses: number;
}

export interface RefusalBudgetOptions {
  readonly clock: Clock;
  /** Called at the end of a period in which refusals were not recorded. */
  readonly onSummary: (share: AuditShare, summary: RefusalSummary) => void;
}

interface Period {
  recorded: number;
  notRecorded: number;
  readonly addresses: Set<string>;
  readonly cancel: () => void;
}

/** Limits how many refused requests are recorded, over all entry points of the node, and counts the others. */
export class RefusalBudget implements Disposable {
  readonly #options: RefusalBudgetOptions;
  readonly #periods = new Map<AuditShare, Period>();

  constructor(options: RefusalBudgetOptions) {
    this.#options = options;
  }

  /** Whether to record the refusal. */
  take(share: AuditShare, address: string | undefined): boolean {
    const period = this.#periods.get(share) ?? this.#begin(share);
    if (period.recorded < (share === "anonymous" ? ANONYMOUS_REFUSALS : TENANT_REFUSALS)) {
      period.recorded += 1;
      return true;
    }
    period.notRecorded += 1;
    if (address !== undefined && period.addresses.size < MAX_ADDRESSES) period.addresses.add(address);
    return false;
  }

  /** Summarizes what was not recorded so far. */
  [Symbol.dispose](): void {
    for (const share of [...this.#periods.keys()]) this.#end(share);
  }

  #begin(share: AuditShare): Period {
    const cancel = this.#options.clock.schedule(PERIOD_MS, () => this.#end(share));
    const period = { recorded: 0, notRecorded: 0, addresses: new Set<string>(), cancel };
    this.#periods.set(share, period);
    return period;
  }

  #end(share: AuditShare): void {
    const period = this.#periods.get(share);
    if (period === undefined) return;
    period.cancel();
    this.#periods.delete(share);
    const { notRecorded: requests, addresses } = period;
    if (requests > 0) this.#options.onSummary(share, { requests, addresses: addresses.size });
  }
}
