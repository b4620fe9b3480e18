import { type Clock, type ObjectStore, pause, SandboxError } from "@sandpiper/core";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import { requireQuota } from "../auth/quota.ts";
import type { Usage } from "../records/sandbox-record.ts";
import { type Holding, type Holdings, type LedgerChange, QuotaLedger, usageOf } from "./quota-ledger.ts";

const RETRY_MS = 1000;

type KeyHolder = Extract<Principal, { kind: "key" }>;

export interface SharedQuotasOptions {
  readonly store: ObjectStore;
  readonly nodeId: string;
  readonly clock: Clock;
  /** Sandboxes of keys without a quota are not counted. */
  readonly hasQuota: (keyId: string) => boolean;
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

const unlimited: QuotaReservation = { bind: () => Promise.resolve(), [Symbol.dispose]: () => {} };

/**
 * Enforces the quotas of keys across all nodes of a cluster. A sandbox counts from before its creation until it ends, whether it
 * runs on a node, moves to another, or is at rest.
 */
export class SharedQuotas {
  readonly #options: SharedQuotasOptions;
  readonly #ledgers = new Map<string, QuotaLedger>();
  /** Names in the ledgers that belong to this process. */
  readonly #own = new Set<string>();
  readonly #pending = new Set<Promise<void>>();
  #isStopped = false;

  constructor(options: SharedQuotasOptions) {
    this.#options = options;
  }

  /** Throws `resource_exhausted` (reason `quota_exceeded`). */
  async reserve(owner: KeyHolder, wanted: Usage): Promise<QuotaReservation> {
    if (!this.#options.hasQuota(owner.keyId)) return unlimited;
    const { nodeId } = this.#options;
    const name = `reserved-${crypto.randomUUID()}`;
    const holding = { node: nodeId, memoryMib: wanted.memoryMib, vcpuCount: wanted.vcpuCount };
    const add: LedgerChange = (holdings) => {
      requireQuota(owner, usageOf(holdings), wanted);
      holdings.set(name, holding);
    };
    const ledger = this.#ledger(owner.keyId);
    this.#own.add(name);
    try {
      await ledger.change(add).catch(async (thrown) => {
        if (!isRefusal(thrown) || !(await this.#dropLeftovers(ledger))) throw thrown;
        await ledger.change(add);
      });
    } catch (thrown) {
      // The reservation may have been written although the response was lost.
      if (isRefusal(thrown)) this.#own.delete(name);
      else this.#remove(owner.keyId, name);
      throw thrown;
    }
    return this.#reservation(owner, { name, holding, wanted });
  }

  /** Counts a sandbox that moved to this node or existed before, even if it exceeds the quota. */
  hold(keyId: string, id: SandboxId, { memoryMib, vcpuCount }: Usage): void {
    if (!this.#options.hasQuota(keyId)) return;
    this.#own.add(id);
    const holding = { node: this.#options.nodeId, memoryMib, vcpuCount };
    this.#inBackground(keyId, (holdings) => void holdings.set(id, holding));
  }

  /** Call when a sandbox was destroyed or has failed. */
  ended(keyId: string, id: SandboxId): void {
    if (this.#options.hasQuota(keyId)) this.#remove(keyId, id);
  }

  /** Resolves when all background changes are written. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** Stops retrying. Other nodes remove the leftovers if this node does not start again. */
  stop(): void {
    this.#isStopped = true;
  }

  #reservation(owner: KeyHolder, slot: { name: string; holding: Holding; wanted: Usage }): QuotaReservation {
    const { name, holding, wanted } = slot;
    let isOpen = true;
    return {
      bind: async (id) => {
        isOpen = false;
        this.#own.add(id);
        try {
          await this.#ledger(owner.keyId).change((holdings) => {
            if (!holdings.delete(name)) requireQuota(owner, usageOf(holdings), wanted);
            holdings.set(id, holding);
          });
          this.#own.delete(name);
        } catch (thrown) {
          this.#remove(owner.keyId, name);
          this.#remove(owner.keyId, id);
          throw thrown;
        }
      },
      [Symbol.dispose]: () => {
        if (isOpen) this.#remove(owner.keyId, name);
        isOpen = false;
      },
    };
  }

  #remove(keyId: string, name: string): void {
    this.#inBackground(
      keyId,
      (holdings) => void holdings.delete(name),
      () => this.#own.delete(name),
    );
  }

  #inBackground(keyId: string, change: LedgerChange, done = () => {}): void {
    const work = this.#retry(keyId, change).then(done);
    this.#pending.add(work);
    work.finally(() => this.#pending.delete(work));
  }

  async #retry(keyId: string, change: LedgerChange): Promise<void> {
    const { clock, onError } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#ledger(keyId).change(change);
        return;
      } catch (thrown) {
        if (attempt === 0) onError(SandboxError.from(thrown));
        if (this.#isStopped) return;
        await pause(clock, RETRY_MS);
      }
    }
  }

  /** Removes leftovers of dead nodes: reservations of failed creations, and sandboxes that no longer exist. */
  async #dropLeftovers(ledger: QuotaLedger): Promise<boolean> {
    const { isNodeAlive } = this.#options;
    const all = [...(await ledger.read())];
    const nodes = [...new Set(all.map(([, { node }]) => node))];
    const alive = new Map(await Promise.all(nodes.map(async (node) => [node, await isNodeAlive(node)] as const)));
    const leftovers: string[] = [];
    for (const [name, { node }] of all) if (await this.#isLeftover(name, node, alive)) leftovers.push(name);
    if (leftovers.length === 0) return false;
    await ledger.change((holdings: Holdings) => {
      for (const name of leftovers) if (!this.#own.has(name)) holdings.delete(name);
    });
    return true;
  }

  async #isLeftover(name: string, node: string, alive: ReadonlyMap<string, boolean>): Promise<boolean> {
    const { nodeId, exists } = this.#options;
    const isInUse = node === nodeId ? this.#own.has(name) : alive.get(node) === true;
    return !isInUse && !(isSandboxId(name) && (await exists(name)));
  }

  #ledger(keyId: string): QuotaLedger {
    const known = this.#ledgers.get(keyId);
    if (known !== undefined) return known;
    const { store, clock } = this.#options;
    const ledger = new QuotaLedger({ store, clock, key: `quotas/${keyId}.json` });
    this.#ledgers.set(keyId, ledger);
    return ledger;
  }
}

function isRefusal(thrown: unknown): boolean {
  return thrown instanceof SandboxError && thrown.reason === "quota_exceeded";
}
