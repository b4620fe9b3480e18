import { SandboxError } from "@sandpiper/core";
import { z } from "zod";
import type { Usage } from "../records/sandbox-record.ts";
import { SharedDocument, type SharedDocumentOptions } from "./shared-document.ts";

const holdingSchema = z.object({ node: z.string(), memoryMib: z.number(), vcpuCount: z.number() });
const ledgerSchema = z.object({ holdings: z.record(z.string(), holdingSchema) });

/** What one sandbox takes of its key's quota, and the node that last answered for it. */
export type Holding = z.infer<typeof holdingSchema>;

/** By the sandbox's id, or by a name of its own while the sandbox has none. */
export type Holdings = Map<string, Holding>;

/** Changes the holdings, or throws and leaves them as they are. Called again whenever another node was faster. */
export type LedgerChange = (holdings: Holdings) => void;

interface Waiting {
  readonly change: LedgerChange;
  readonly done: PromiseWithResolvers<void>;
}

export type QuotaLedgerOptions = Omit<SharedDocumentOptions<z.infer<typeof ledgerSchema>>, "schema">;

/** What all sandboxes of one key take, on whatever node. Changes that come at once are written at once. */
export class QuotaLedger {
  readonly #document: SharedDocument<z.infer<typeof ledgerSchema>>;
  #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(options: QuotaLedgerOptions) {
    this.#document = new SharedDocument({ ...options, schema: ledgerSchema });
  }

  async read(): Promise<Holdings> {
    return holdingsOf((await this.#document.read())?.content);
  }

  change(change: LedgerChange): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ change, done });
    this.#write();
    return done.promise;
  }

  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    while (this.#waiting.length > 0) await this.#writeAll(this.#waiting.splice(0));
    this.#isWriting = false;
  }

  async #writeAll(batch: readonly Waiting[]): Promise<void> {
    const refusals = new Map<Waiting, unknown>();
    try {
      await this.#document.change((now) => {
        refusals.clear();
        const holdings = holdingsOf(now);
        for (const waiting of batch) {
          try {
            waiting.change(holdings);
          } catch (thrown) {
            refusals.set(waiting, thrown);
          }
        }
        return refusals.size === batch.length ? undefined : { holdings: Object.fromEntries(holdings) };
      });
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      for (const { done } of batch) done.reject(error);
      return;
    }
    for (const waiting of batch) {
      if (refusals.has(waiting)) waiting.done.reject(refusals.get(waiting));
      else waiting.done.resolve();
    }
  }
}

export function usageOf(holdings: Holdings): Usage {
  const all = [...holdings.values()];
  return {
    sandboxes: all.length,
    memoryMib: all.reduce((sum, { memoryMib }) => sum + memoryMib, 0),
    vcpuCount: all.reduce((sum, { vcpuCount }) => sum + vcpuCount, 0),
  };
}

function holdingsOf(content: z.infer<typeof ledgerSchema> | undefined): Holdings {
  return new Map(Object.entries(content?.holdings ?? {}));
}
