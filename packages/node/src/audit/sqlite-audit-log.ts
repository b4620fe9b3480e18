import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import type { AuditEntry, AuditVerification } from "@sandpiper/protocol";
import type { NodeDatabase } from "../records/database.ts";
import { type AuditChain, type ChainedEntry, entryStatement, headStatement } from "./audit-chain.ts";
import { AuditRotation, type AuditShare } from "./audit-rotation.ts";
import { type AuditRow, entryFromRow, readHead, startChain } from "./audit-rows.ts";
import { verifyAuditLog } from "./verify-audit-log.ts";

const DEFAULT_MAX_ENTRIES = 100_000;
/** How many entries are kept in memory while writes fail; beyond that, the oldest are lost. */
const MAX_PENDING = 10_000;

const ADD = `INSERT INTO auditEntries
  (id, at, actor, tenant, operation, sandboxId, status, requestId, notRecorded, share, mac)
  VALUES (:id, :at, :actor, :tenant, :operation, :sandboxId, :status, :requestId, :notRecorded, :share, :mac)`;
const SET_HEAD = "INSERT OR REPLACE INTO auditHead (one, id, mac, seal) VALUES (1, :id, :mac, :seal)";

export interface NewAuditEntry extends Readonly<Omit<AuditEntry, "id" | "at">> {
  readonly share: AuditShare;
}

export interface AuditLogOptions {
  readonly chain: AuditChain;
  readonly clock?: Clock | undefined;
  readonly maxEntries?: number | undefined;
  /** Called with entries after they were written. Must not throw. */
  readonly onWritten?: ((entries: readonly ChainedEntry[]) => void) | undefined;
  /** Called when entries could not be written. */
  readonly onError?: ((error: SandboxError) => void) | undefined;
}

interface PendingEntry extends NewAuditEntry {
  readonly at: Date;
}

/**
 * The newest audit entries, as a chain. Entries are written together at the end of the event loop turn that added them.
 * Written entries survive a kill -9.
 */
export class SqliteAuditLog implements Disposable {
  readonly #database: NodeDatabase;
  readonly #options: AuditLogOptions;
  readonly #clock: Clock;
  readonly #rotation: AuditRotation;
  #head: { readonly id: number; readonly mac: string };
  #pending: PendingEntry[] = [];
  #lost = 0;
  /** Resolved by the next write. */
  #due: PromiseWithResolvers<void> | undefined;

  constructor(database: NodeDatabase, options: AuditLogOptions) {
    this.#database = database;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#rotation = new AuditRotation(database, options.chain, options.maxEntries ?? DEFAULT_MAX_ENTRIES);
    this.#head = startChain(database, options.chain, this.#rotation);
  }

  /** Resolves once the entry is written, or once the write failed and will be retried. */
  add(entry: NewAuditEntry): Promise<void> {
    if (this.#due === undefined) setImmediate(() => this.#writeDue());
    this.#due ??= Promise.withResolvers();
    this.#pending.push({ ...entry, at: this.#clock.now() });
    return this.#due.promise;
  }

  /** Ordered by id. */
  list({ after, limit }: { readonly after: number; readonly limit: number }): readonly AuditEntry[] {
    this.#write();
    const rows = this.#database
      .prepare("SELECT * FROM auditEntries WHERE id > :after ORDER BY id LIMIT :limit")
      .all({ after, limit });
    return rows.map((row) => entryFromRow(row as unknown as AuditRow));
  }

  /** Checks that every entry since the beginning is unchanged, or was removed by the log itself. */
  async verify(): Promise<AuditVerification> {
    this.#write();
    return await verifyAuditLog(this.#database, this.#options.chain);
  }

  /** The id of the newest entry; 0 without one. */
  get newestId(): number {
    return readHead(this.#database)?.id ?? 0;
  }

  /** Call before the database is closed. */
  [Symbol.dispose](): void {
    this.#writeDue();
  }

  /** No caller handles its errors, and a full disk must not stop the node. The next write retries the entries. */
  #writeDue(): void {
    const due = this.#due;
    this.#due = undefined;
    try {
      this.#write();
    } catch (thrown) {
      const surplus = Math.max(0, this.#pending.length - MAX_PENDING);
      this.#pending.splice(0, surplus);
      this.#lost += surplus;
      this.#options.onError?.(SandboxError.from(thrown));
    } finally {
      due?.resolve();
    }
  }

  #write(): void {
    if (this.#pending.length === 0 || !this.#database.isOpen) return;
    const lost = this.#lost > 0 ? [lostEntry(this.#lost, this.#clock.now())] : [];
    try {
      const written = this.#database.transaction(() => this.#insert([...lost, ...this.#pending]));
      this.#head = written.at(-1) ?? this.#head;
      this.#pending = [];
      this.#lost = 0;
      this.#options.onWritten?.(written);
    } catch (thrown) {
      this.#rotation.recount();
      throw thrown;
    }
  }

  #insert(pending: readonly PendingEntry[]): readonly ChainedEntry[] {
    const { chain } = this.#options;
    let { id, mac: prev } = this.#head;
    const written: ChainedEntry[] = [];
    for (const { share, at, ...fields } of pending) {
      id += 1;
      const entry = { id, at: at.toISOString(), ...fields };
      const mac = chain.sign(entryStatement(entry, prev));
      const notRecorded = entry.notRecorded === undefined ? null : JSON.stringify(entry.notRecorded);
      this.#database.prepare(ADD).run({ ...entry, at: at.getTime(), notRecorded, share, mac });
      this.#rotation.added(share);
      written.push({ ...entry, prev, mac });
      prev = mac;
    }
    this.#database.prepare(SET_HEAD).run({ id, mac: prev, seal: chain.sign(headStatement({ id, mac: prev })) });
    this.#rotation.removeSurplus();
    return written;
  }
}

function lostEntry(requests: number, at: Date): PendingEntry {
  return {
    at,
    actor: null,
    tenant: null,
    operation: "entriesNotRecorded",
    sandboxId: null,
    status: 500,
    requestId: "",
    notRecorded: { requests, addresses: 0 },
    share: "operators",
  };
}
