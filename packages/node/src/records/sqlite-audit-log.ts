import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import type { AuditEntry } from "@sandpiper/protocol";
import { BoundedRows } from "./bounded-rows.ts";
import type { NodeDatabase } from "./database.ts";

const DEFAULT_MAX_ENTRIES = 100_000;
/** How many entries are kept in memory while writes fail; beyond that, the oldest are lost. */
const MAX_PENDING = 10_000;

const ADD = `INSERT INTO auditEntries (at, actor, tenant, operation, sandboxId, status, requestId)
  VALUES (:at, :actor, :tenant, :operation, :sandboxId, :status, :requestId)`;

export type NewAuditEntry = Readonly<Omit<AuditEntry, "id" | "at">>;

export interface AuditLogOptions {
  readonly clock?: Clock | undefined;
  readonly maxEntries?: number | undefined;
  /** Called when entries could not be written. */
  readonly onError?: ((error: SandboxError) => void) | undefined;
}

interface PendingEntry extends NewAuditEntry {
  readonly at: Date;
}

/**
 * The newest audit entries. Entries are written together at the end of the event loop turn that added them, so that no response
 * waits for the write. Written entries survive a kill -9.
 */
export class SqliteAuditLog implements Disposable {
  readonly #database: NodeDatabase;
  readonly #clock: Clock;
  readonly #rows: BoundedRows;
  readonly #onError: (error: SandboxError) => void;
  #pending: PendingEntry[] = [];
  #isDue = false;

  constructor(database: NodeDatabase, options: AuditLogOptions = {}) {
    this.#database = database;
    this.#clock = options.clock ?? systemClock;
    this.#onError = options.onError ?? (() => {});
    this.#rows = new BoundedRows(database, "auditEntries", options.maxEntries ?? DEFAULT_MAX_ENTRIES);
  }

  add(entry: NewAuditEntry): void {
    if (!this.#isDue) setImmediate(() => this.#writeDue());
    this.#isDue = true;
    this.#pending.push({ ...entry, at: this.#clock.now() });
  }

  /** Ordered by id. */
  list({ after, limit }: { readonly after: number; readonly limit: number }): readonly AuditEntry[] {
    this.#write();
    return this.#database
      .prepare("SELECT * FROM auditEntries WHERE id > :after ORDER BY id LIMIT :limit")
      .all({ after: Math.max(after, this.#rows.floor), limit })
      .map((row) => ({ ...row, at: new Date(row["at"] as number).toISOString() }) as AuditEntry);
  }

  /** Call before the database is closed. */
  [Symbol.dispose](): void {
    this.#writeDue();
  }

  /** No caller handles its errors, and a full disk must not stop the node. The next write retries the entries. */
  #writeDue(): void {
    this.#isDue = false;
    try {
      this.#write();
    } catch (thrown) {
      this.#pending.splice(0, Math.max(0, this.#pending.length - MAX_PENDING));
      this.#onError(SandboxError.from(thrown));
    }
  }

  #write(): void {
    const entries = this.#pending;
    if (entries.length === 0 || !this.#database.isOpen) return;
    this.#database.transaction(() => {
      for (const { at, actor, tenant, operation, sandboxId, status, requestId } of entries) {
        const row = { at: at.getTime(), actor, tenant, operation, sandboxId, status, requestId };
        this.#rows.added(Number(this.#database.prepare(ADD).run(row).lastInsertRowid));
      }
    });
    this.#pending = [];
  }
}
