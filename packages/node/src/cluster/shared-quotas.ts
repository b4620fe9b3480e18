import { randomUUID } from "node:crypto";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
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
  /** Sandboxes of other keys are not counted. */
  readonly hasQuota: (keyId: string) => boolean;
  readonly isNodeAlive: (nodeId: string) => Promise<boolean>;
  /** Whether a sandbox is held by any node, or is in the store. */
  readonly exists: (id: SandboxId) => Promise<boolean>;
  /** Told when what has ended could not be taken off yet; it is tried again. */
  readonly onError: (error: SandboxError) => void;
  readonly randomUuid?: (() => string) | undefined;
}

/** Room for a sandbox that is being made. Disposed before it is bound, the room is free again. */
export interface QuotaReservation extends Disposable {
  /**
   * From now on the room is this sandbox's, to its end. Throws when this node was taken for dead meanwhile, and the room
   * was given to others.
   */
  bind(id: SandboxId): Promise<void>;
}

const unlimited: QuotaReservation = { bind: () => Promise.resolve(), [Symbol.dispose]: () => {} };

/**
 * Keeps the quotas of keys over all nodes of a cluster: a sandbox counts from before it is made until it has ended,
 * wherever it runs or rests. It moves from node to node without ceasing to count.
 */
export class SharedQuotas {
  readonly #options: SharedQuotasOptions;
  readonly #ledgers = new Map<string, QuotaLedger>();
  /** Names in the ledgers that this node answers for. */
  readonly #own = new Set<string>();
  readonly #pending = new Set<Promise<void>>();
  #isStopped = false;

  constructor(options: SharedQuotasOptions) {
    this.#options = options;
  }

  /** Throws `resource_exhausted` (reason `quota_exceeded`). */
  async reserve(owner: KeyHolder, wanted: Usage): Promise<QuotaReservation> {
    if (!this.#options.hasQuota(owner.keyId)) return unlimited;
    const { nodeId, randomUuid = randomUUID } = this.#options;
    const name = `reserved-${randomUuid()}`;
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
      // It may have been written although the answer was lost.
      if (isRefusal(thrown)) this.#own.delete(name);
      else this.#takeOff(owner.keyId, name);
      throw thrown;
    }
    return this.#reservation(owner, { name, holding, wanted });
  }

  /** A sandbox has come to this node from another, or was here before: it counts, and is not refused. */
  hold(keyId: string, id: SandboxId, { memoryMib, vcpuCount }: Usage): void {
    if (!this.#options.hasQuota(keyId)) return;
    this.#own.add(id);
    const holding = { node: this.#options.nodeId, memoryMib, vcpuCount };
    this.#inBackground(keyId, (holdings) => void holdings.set(id, holding));
  }

  /** A sandbox has been destroyed, or has failed. */
  ended(keyId: string, id: SandboxId): void {
    if (this.#options.hasQuota(keyId)) this.#takeOff(keyId, id);
  }

  /** Resolves when everything that was to be written is written. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** What could not be written so far is given up; others clear it away when this node does not come back. */
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
          this.#takeOff(owner.keyId, name);
          this.#takeOff(owner.keyId, id);
          throw thrown;
        }
      },
      [Symbol.dispose]: () => {
        if (isOpen) this.#takeOff(owner.keyId, name);
        isOpen = false;
      },
    };
  }

  #takeOff(keyId: string, name: string): void {
    this.#inBackground(
      keyId,
      (holdings) => void holdings.delete(name),
      () => this.#own.delete(name),
    );
  }

  #inBackground(keyId: string, change: LedgerChange, done = () => {}): void {
    const work = this.#insist(keyId, change).then(done);
    this.#pending.add(work);
    work.finally(() => this.#pending.delete(work));
  }

  async #insist(keyId: string, change: LedgerChange): Promise<void> {
    const { clock, onError } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#ledger(keyId).change(change);
        return;
      } catch (thrown) {
        if (attempt === 0) onError(SandboxError.from(thrown));
        if (this.#isStopped) return;
        await new Promise<void>((resolve) => {
          clock.schedule(RETRY_MS, resolve);
        });
      }
    }
  }

  /** Drops what nodes that died have left: creations that came to nothing, and sandboxes that are nowhere any more. */
  async #dropLeftovers(ledger: QuotaLedger): Promise<boolean> {
    const gone: string[] = [];
    const { isNodeAlive } = this.#options;
    const all = [...(await ledger.read())];
    const nodes = [...new Set(all.map(([, { node }]) => node))];
    const alive = new Map(await Promise.all(nodes.map(async (node) => [node, await isNodeAlive(node)] as const)));
    for (const [name, { node }] of all) if (await this.#isLeftover(name, node, alive)) gone.push(name);
    if (gone.length === 0) return false;
    await ledger.change((holdings: Holdings) => {
      for (const name of gone) if (!this.#own.has(name)) holdings.delete(name);
    });
    return true;
  }

  async #isLeftover(name: string, node: string, alive: ReadonlyMap<string, boolean>): Promise<boolean> {
    const { nodeId, exists } = this.#options;
    const isAnsweredFor = node === nodeId ? this.#own.has(name) : alive.get(node) === true;
    return !isAnsweredFor && !(isSandboxId(name) && (await exists(name)));
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
