import { SandboxError } from "@sandpiper/core";
import { z } from "zod";
import { sumUsage } from "../auth/quota.ts";
import type { DurableUsage } from "../records/sandbox-record.ts";
import { SharedDocument, type SharedDocumentOptions } from "./shared-document.ts";

const holdingSchema = z.object({
  node: z.string(),
  /** 0 for a failed sandbox, which only keeps its checkpoints. Nodes of earlier versions omit it. */
  sandboxes: z.number().default(1),
  memoryMib: z.number(),
  vcpuCount: z.number(),
  /** Nodes of earlier versions omit these. */
  diskMib: z.number().default(0),
  checkpoints: z.number().default(0),
  checkpointBytes: z.number().default(0),
});
const ledgerSchema = z.object({ holdings: z.record(z.string(), holdingSchema) });

/** What one sandbox uses of a quota, and the node that last recorded it. */
export type Holding = z.infer<typeof holdingSchema>;

/** Keyed by the sandbox's id, or by a reservation's name before the sandbox has an id. */
export type Holdings = Map<string, Holding>;

/** Changes the holdings, or throws before it changes any. Called again after each conflict with another node. */
export type LedgerChange = (holdings: Holdings) => void;

interface PendingChange {
  readonly change: LedgerChange;
  readonly done: PromiseWithResolvers<void>;
}

export type QuotaLedgerOptions = Omit<SharedDocumentOptions<z.infer<typeof ledgerSchema>>, "schema">;

/** The quota usage of one key or tenant on all nodes. Concurrent changes are written together. */
export class QuotaLedger {
  readonly #document: SharedDocument<z.infer<typeof ledgerSchema>>;
  #pending: PendingChange[] = [];
  #isWriting = false;

  constructor(options: QuotaLedgerOptions) {
    this.#document = new SharedDocument({ ...options, schema: ledgerSchema });
  }

  async read(): Promise<Holdings> {
    return holdingsOf((await this.#document.read())?.content);
  }

  change(change: LedgerChange): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#pending.push({ change, done });
    this.#write();
    return done.promise;
  }

  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    while (this.#pending.length > 0) await this.#writeAll(this.#pending.splice(0));
    this.#isWriting = false;
  }

  async #writeAll(batch: readonly PendingChange[]): Promise<void> {
    const refusals = new Map<PendingChange, unknown>();
    try {
      await this.#document.change((content) => {
        refusals.clear();
        const holdings = holdingsOf(content);
        for (const pending of batch) {
          try {
            pending.change(holdings);
          } catch (thrown) {
            refusals.set(pending, thrown);
          }
        }
        return refusals.size === batch.length ? undefined : { holdings: Object.fromEntries(holdings) };
      });
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      for (const { done } of batch) done.reject(error);
      return;
    }
    for (const pending of batch) {
      if (refusals.has(pending)) pending.done.reject(refusals.get(pending));
      else pending.done.resolve();
    }
  }
}

export function usageOf(holdings: Holdings): DurableUsage {
  return sumUsage([...holdings.values()].map(({ node: _, ...usage }) => usage));
}

function holdingsOf(content: z.infer<typeof ledgerSchema> | undefined): Holdings {
  return new Map(Object.entries(content?.holdings ?? {}));
}
