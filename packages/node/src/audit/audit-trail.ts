import { type Clock, type SandboxError, systemClock } from "@sandpiper/core";
import type { AuditEntry, AuditVerification } from "@sandpiper/protocol";
import { isAdmin } from "../auth/access.ts";
import { actorOf, type Principal } from "../auth/principal.ts";
import type { NodeDatabase } from "../records/database.ts";
import type { AuditChain, ChainedEntry } from "./audit-chain.ts";
import type { AuditShare } from "./audit-rotation.ts";
import { RefusalBudget, type RefusalSummary } from "./refusal-budget.ts";
import { SqliteAuditLog } from "./sqlite-audit-log.ts";
import { verifyShippedFile } from "./verify-shipped-file.ts";

/** Statuses of requests that the node refused before they had an effect. */
const refusals: ReadonlySet<number> = new Set([401, 403, 429]);

/** A request that is to be recorded. */
export interface AuditNote extends Pick<AuditEntry, "operation" | "sandboxId" | "status" | "requestId"> {
  /** Undefined for an anonymous caller. */
  readonly principal?: Principal | undefined;
  /** The address from which the request came. */
  readonly address?: string | undefined;
}

/** Where the node's entry points record requests. */
export interface AuditSink {
  /** Resolves once the entry, if the note needs one, is written. An answer that waits for it is never without its entry. */
  note(note: AuditNote): Promise<void>;
}

/** Called with entries after they were written. Must not throw. */
export type AuditListener = (entries: readonly ChainedEntry[]) => void;

export interface AuditTrailOptions {
  readonly chain: AuditChain;
  readonly clock?: Clock | undefined;
  readonly maxEntries?: number | undefined;
  readonly onError?: ((error: SandboxError) => void) | undefined;
}

/** The audit log of the node: one budget for the refusals of all entry points. */
export class AuditTrail implements AuditSink, Disposable {
  readonly #log: SqliteAuditLog;
  readonly #budget: RefusalBudget;
  readonly #chain: AuditChain;
  readonly #listeners = new Set<AuditListener>();

  constructor(database: NodeDatabase, options: AuditTrailOptions) {
    const { clock = systemClock, chain } = options;
    this.#chain = chain;
    const onWritten: AuditListener = (entries) => this.#listeners.forEach((listener) => void listener(entries));
    this.#log = new SqliteAuditLog(database, { ...options, clock, onWritten });
    this.#budget = new RefusalBudget({ clock, onSummary: (share, summary) => this.#summarize(share, summary) });
  }

  async note({ principal, address, ...fields }: AuditNote): Promise<void> {
    const share = shareOf(principal);
    if (refusals.has(fields.status) && !this.#budget.take(share, address)) return;
    const actor = principal === undefined ? null : actorOf(principal);
    await this.#log.add({ ...fields, actor, tenant: principal?.tenant ?? null, share });
  }

  /** Ordered by id. */
  list(query: { readonly after: number; readonly limit: number }): readonly AuditEntry[] {
    return this.#log.list(query);
  }

  async verify(): Promise<AuditVerification> {
    return await this.#log.verify();
  }

  async verifyFile(text: AsyncIterable<string>): Promise<AuditVerification> {
    return await verifyShippedFile(text, { chain: this.#chain, newestId: this.#log.newestId });
  }

  subscribe(listener: AuditListener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Call before the database is closed. */
  [Symbol.dispose](): void {
    this.#budget[Symbol.dispose]();
    this.#log[Symbol.dispose]();
  }

  #summarize(share: AuditShare, notRecorded: RefusalSummary): void {
    this.#log.add({
      actor: null,
      tenant: share.startsWith("tenant:") ? share.slice("tenant:".length) : null,
      operation: "refusalsNotRecorded",
      sandboxId: null,
      status: 429,
      requestId: "",
      notRecorded,
      share,
    });
  }
}

function shareOf(principal: Principal | undefined): AuditShare {
  if (principal === undefined) return "anonymous";
  return isAdmin(principal) ? "operators" : `tenant:${principal.tenant}`;
}
