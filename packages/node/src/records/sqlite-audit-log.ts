import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import type { AuditEntry } from "@sandpiper/protocol";
import { BoundedRows } from "./bounded-rows.ts";
import type { NodeDatabase } from "./database.ts";

const DEFAULT_MAX_ENTRIES = 100_000;
/** So many are kept in memory while the disk takes none; then the oldest are lost. */
const MAX_WAITING = 10_000;

const ADD = `INSERT INTO auditEntries (at, actor, tenant, operation, sandboxId, status, requestId)
  VALUES (:at, :actor, :tenant, :operation, :sandboxId, :status, :requestId)`;

export type NewAuditEntry = Readonly<Omit<AuditEntry, "id" | "at">>;

export interface AuditLogOptions {
  readonly clock?: Clock | undefined;
  readonly maxEntries?: number | undefined;
  /** Told when entries could not be written down. */
  readonly onError?: ((error: SandboxError) => void) | undefined;
}

interface Waiting extends NewAuditEntry {
  readonly at: Date;
}

/**
 * Who did what: the newest entries. They are written together at the end of the turn in which they were added, so that
 * nobody's answer waits for them; from then on they are there also after a kill -9.
 */
export class SqliteAuditLog implements Disposable {
  readonly #database: NodeDatabase;
  readonly #clock: Clock;
  readonly #rows: BoundedRows;
  readonly #onError: (error: SandboxError) => void;
  #waiting: Waiting[] = [];
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
    this.#waiting.push({ ...entry, at: this.#clock.now() });
  }

  /** In the order of their ids. */
  list({ after, limit }: { readonly after: number; readonly limit: number }): readonly AuditEntry[] {
    this.#write();
    return this.#database
      .prepare("SELECT * FROM auditEntries WHERE id > :after ORDER BY id LIMIT :limit")
      .all({ after: Math.max(after, this.#rows.floor), limit })
      .map((row) => ({ ...row, at: new Date(row["at"] as number).toISOString() }) as AuditEntry);
  }

  /** To be called before the database is closed. */
  [Symbol.dispose](): void {
    this.#write();
  }

  /** Nobody waits for it: a disk that is full must not end the node. What could not be written is tried again with the next. */
  #writeDue(): void {
    this.#isDue = false;
    try {
      this.#write();
    } catch (thrown) {
      this.#waiting.splice(0, Math.max(0, this.#waiting.length - MAX_WAITING));
      this.#onError(SandboxError.from(thrown));
    }
  }

  #write(): void {
    const entries = this.#waiting;
    if (entries.length === 0 || !this.#database.isOpen) return;
    this.#database.transaction(() => {
      for (const { at, actor, tenant, operation, sandboxId, status, requestId } of entries) {
        const row = { at: at.getTime(), actor, tenant, operation, sandboxId, status, requestId };
        this.#rows.added(Number(this.#database.prepare(ADD).run(row).lastInsertRowid));
      }
    });
    this.#waiting = [];
  }
}
