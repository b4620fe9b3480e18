import { type Clock, type ObjectStore, pause, SandboxError } from "@sandpiper/core";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { type Account, NO_USAGE, requireQuota } from "../auth/quota.ts";
import type { DurableUsage } from "../records/sandbox-record.ts";
import { type Holding, type Holdings, type LedgerChange, QuotaLedger, usageOf } from "./quota-ledger.ts";

const RETRY_MS = 1000;
/** The node of sandboxes that no node has counted: it never lives, so only the sandbox's existence decides. */
const NO_NODE = "";

export interface AccountQuotaOptions {
  readonly store: ObjectStore;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly isNodeAlive: (nodeId: string) => Promise<boolean>;
  /** Whether any node owns the sandbox, or it is at rest in the store. */
  readonly exists: (id: SandboxId) => Promise<boolean>;
  /** Called when a background change fails for the first time; it is retried. */
  readonly onError: (error: SandboxError) => void;
}

/** A share of the quota for a sandbox that is being created. Disposing it before `bind` releases the share. */
export interface QuotaReservation extends Disposable {
  /**
   * Assigns the share to the sandbox until it ends. Throws if other nodes considered this one dead and used the share meanwhile.
   */
  bind(id: SandboxId): Promise<void>;
}

/** Enforces the quota of one key or tenant across all nodes of a cluster. */
export class AccountQuota {
  readonly #options: AccountQuotaOptions;
  readonly #ledger: QuotaLedger;
  /** Names in the ledger that belong to this process. */
  readonly #own = new Set<string>();
  readonly #pending = new Set<Promise<void>>();
  #isStopped = false;

  constructor(account: Pick<Account, "kind" | "name">, options: AccountQuotaOptions) {
    this.#options = options;
    const { store, clock } = options;
    this.#ledger = new QuotaLedger({ store, clock, key: ledgerKey(account) });
  }

  async reserve(account: Account, wanted: DurableUsage): Promise<QuotaReservation> {
    const name = `reserved-${crypto.randomUUID()}`;
    const holding = this.#holding(wanted);
    this.#own.add(name);
    try {
      await this.#changeOrClean((holdings) => {
        requireQuota(account, usageOf(holdings), wanted);
        holdings.set(name, holding);
      });
    } catch (thrown) {
      // The reservation may have been written although the response was lost.
      if (isRefusal(thrown)) this.#own.delete(name);
      else this.#remove(name);
      throw thrown;
    }
    return this.#reservation(account, { name, holding, wanted });
  }

  /** Changes what a sandbox uses. Throws if the increase exceeds the quota. */
  async resize(account: Account, id: SandboxId, usage: DurableUsage): Promise<void> {
    this.#own.add(id);
    await this.#changeOrClean((holdings) => {
      const { checkpoints, checkpointBytes } = usageOf(new Map([[id, holdings.get(id) ?? this.#holding(NO_USAGE)]]));
      const more = {
        checkpoints: usage.checkpoints - checkpoints,
        checkpointBytes: usage.checkpointBytes - checkpointBytes,
      };
      requireQuota(account, usageOf(holdings), more);
      holdings.set(id, this.#holding(usage));
    });
  }

  /** Counts a sandbox of this node, even if it exceeds the quota. */
  hold(id: SandboxId, usage: DurableUsage): void {
    this.#own.add(id);
    this.#inBackground((holdings) => void holdings.set(id, this.#holding(usage)));
  }

  /** Counts sandboxes that no node has counted. Each is dropped again once it no longer exists. */
  holdAtRest(all: ReadonlyMap<SandboxId, DurableUsage>): void {
    this.#inBackground((holdings) => {
      for (const [id, usage] of all)
        if (!holdings.has(id)) holdings.set(id, { ...this.#holding(usage), node: NO_NODE });
    });
  }

  ended(id: SandboxId): void {
    this.#remove(id);
  }

  /** Resolves when all background changes are written. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** Stops retrying. Other nodes remove the leftovers if this node does not start again. */
  stop(): void {
    this.#isStopped = true;
  }

  #holding(usage: DurableUsage): Holding {
    return { node: this.#options.nodeId, ...usage };
  }

  #reservation(account: Account, slot: { name: string; holding: Holding; wanted: DurableUsage }): QuotaReservation {
    const { name, holding, wanted } = slot;
    let isOpen = true;
    return {
      bind: async (id) => {
        isOpen = false;
        this.#own.add(id);
        try {
          await this.#ledger.change((holdings) => {
            if (!holdings.delete(name)) requireQuota(account, usageOf(holdings), wanted);
            holdings.set(id, holding);
          });
          this.#own.delete(name);
        } catch (thrown) {
          this.#remove(name);
          this.#remove(id);
          throw thrown;
        }
      },
      [Symbol.dispose]: () => {
        if (isOpen) this.#remove(name);
        isOpen = false;
      },
    };
  }

  /** Retries a refused change once, if the leftovers of dead nodes took up the quota. */
  async #changeOrClean(change: LedgerChange): Promise<void> {
    await this.#ledger.change(change).catch(async (thrown) => {
      if (!isRefusal(thrown) || !(await this.#dropLeftovers())) throw thrown;
      await this.#ledger.change(change);
    });
  }

  #remove(name: string): void {
    this.#inBackground(
      (holdings) => void holdings.delete(name),
      () => this.#own.delete(name),
    );
  }

  #inBackground(change: LedgerChange, done = () => {}): void {
    const work = this.#retry(change).then(done);
    this.#pending.add(work);
    work.finally(() => this.#pending.delete(work));
  }

  async #retry(change: LedgerChange): Promise<void> {
    const { clock, onError } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#ledger.change(change);
        return;
      } catch (thrown) {
        if (attempt === 0) onError(SandboxError.from(thrown));
        if (this.#isStopped) return;
        await pause(clock, RETRY_MS);
      }
    }
  }

  /** Removes leftovers of dead nodes: reservations of failed creations, and sandboxes that no longer exist. */
  async #dropLeftovers(): Promise<boolean> {
    const { isNodeAlive } = this.#options;
    const all = [...(await this.#ledger.read())];
    const nodes = [...new Set(all.map(([, { node }]) => node))];
    const alive = new Map(await Promise.all(nodes.map(async (node) => [node, await isNodeAlive(node)] as const)));
    const leftovers: string[] = [];
    for (const [name, { node }] of all) if (await this.#isLeftover(name, node, alive)) leftovers.push(name);
    if (leftovers.length === 0) return false;
    await this.#ledger.change((holdings: Holdings) => {
      for (const name of leftovers) if (!this.#own.has(name)) holdings.delete(name);
    });
    return true;
  }

  async #isLeftover(name: string, node: string, alive: ReadonlyMap<string, boolean>): Promise<boolean> {
    const { nodeId, exists } = this.#options;
    const isInUse = node === nodeId ? this.#own.has(name) : alive.get(node) === true;
    return !isInUse && !(isSandboxId(name) && (await exists(name)));
  }
}

/** A key's id is hexadecimal and cannot collide with a tenant's object. */
export function ledgerKey({ kind, name }: Pick<Account, "kind" | "name">): string {
  return kind === "key" ? `quotas/${name}.json` : `quotas/tenant-${name}.json`;
}

function isRefusal(thrown: unknown): boolean {
  return thrown instanceof SandboxError && thrown.reason === "quota_exceeded";
}
