import { type Clock, systemClock } from "@sandpiper/core";
import type { AuditEntry } from "@sandpiper/protocol";
import { BoundedRows } from "./bounded-rows.ts";
import type { NodeDatabase } from "./database.ts";

const DEFAULT_MAX_ENTRIES = 100_000;

const ADD = `INSERT INTO auditEntries (at, actor, tenant, operation, sandboxId, status, requestId)
  VALUES (:at, :actor, :tenant, :operation, :sandboxId, :status, :requestId)`;

export type NewAuditEntry = Readonly<Omit<AuditEntry, "id" | "at">>;

export interface AuditLogOptions {
  readonly clock?: Clock | undefined;
  readonly maxEntries?: number | undefined;
}

/** Who did what: the newest entries. One that was added is there also after a kill -9. */
export class SqliteAuditLog {
  readonly #database: NodeDatabase;
  readonly #clock: Clock;
  readonly #rows: BoundedRows;

  constructor(database: NodeDatabase, options: AuditLogOptions = {}) {
    this.#database = database;
    this.#clock = options.clock ?? systemClock;
    this.#rows = new BoundedRows(database, "auditEntries", options.maxEntries ?? DEFAULT_MAX_ENTRIES);
  }

  add({ actor, tenant, operation, sandboxId, status, requestId }: NewAuditEntry): AuditEntry {
    const at = this.#clock.now();
    const entry = { actor, tenant, operation, sandboxId, status, requestId };
    const id = Number(this.#database.prepare(ADD).run({ at: at.getTime(), ...entry }).lastInsertRowid);
    this.#rows.added(id);
    return { id, at: at.toISOString(), ...entry };
  }

  /** In the order of their ids. */
  list({ after, limit }: { readonly after: number; readonly limit: number }): readonly AuditEntry[] {
    return this.#database
      .prepare("SELECT * FROM auditEntries WHERE id > :after ORDER BY id LIMIT :limit")
      .all({ after: Math.max(after, this.#rows.floor), limit })
      .map((row) => ({ ...row, at: new Date(row["at"] as number).toISOString() }) as AuditEntry);
  }
}
