import { chmodSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { corruptError, openError, tooNewError } from "./database-error.ts";
import { lockHome } from "./home-lock.ts";
import { migrations as allMigrations } from "./migrations.ts";

export interface OpenDatabaseOptions {
  /** How long a statement waits for somebody who looks at the file with other tools. */
  readonly busyTimeoutMs?: number | undefined;
  readonly migrations?: readonly string[] | undefined;
}

/** More changes at once before they are moved into the main file: each such move waits for the disk. */
const CHECKPOINT_PAGES = 4000;

/** The node's records. What was written is still there after a kill -9. */
export class NodeDatabase implements Disposable {
  readonly #sqlite: DatabaseSync;
  readonly #lock: Disposable;
  readonly #statements = new Map<string, StatementSync>();

  constructor(sqlite: DatabaseSync, lock: Disposable) {
    this.#sqlite = sqlite;
    this.#lock = lock;
  }

  get isOpen(): boolean {
    return this.#sqlite.isOpen;
  }

  /** Texts are compiled once and kept: make them of constant parts, and bind everything else. */
  prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#sqlite.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** All of what it writes, or nothing. One within another is part of that one. */
  transaction<Result>(work: () => Result): Result {
    return this.#sqlite.isTransaction ? work() : transact(this.#sqlite, work);
  }

  [Symbol.dispose](): void {
    if (!this.#sqlite.isOpen) return;
    this.#statements.clear();
    this.#sqlite.close();
    this.#lock[Symbol.dispose]();
  }
}

/** Opens the database, or makes it. One that is damaged or newer is refused and stays as it is, byte for byte. */
export function openDatabase(path: string, options: OpenDatabaseOptions = {}): NodeDatabase {
  const { busyTimeoutMs = 5000, migrations = allMigrations } = options;
  let lock: Disposable | undefined;
  let sqlite: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    lock = lockHome(path);
    if (existsSync(path)) checkDatabase(path, migrations.length);
    else createDatabase(path, migrations);
    chmodSync(path, 0o600);
    sqlite = openSqlite(path, busyTimeoutMs);
    migrate(sqlite, migrations);
    return new NodeDatabase(sqlite, lock);
  } catch (thrown) {
    sqlite?.close();
    lock?.[Symbol.dispose]();
    throw openError(path, thrown);
  }
}

/** Looks without the right to write. */
function checkDatabase(path: string, knownVersion: number): void {
  // SQLite takes an empty file for a new database; ours are never empty, so this one has lost what it held.
  if (statSync(path).size === 0) throw corruptError(path, "it is empty");
  const sqlite = new DatabaseSync(path, { readOnly: true, timeout: 1000 });
  try {
    const version = versionOf(sqlite);
    if (version > knownVersion) throw tooNewError(path, { found: version, known: knownVersion });
    const finding = Object.values(sqlite.prepare("PRAGMA quick_check(1)").get() ?? {})[0];
    if (finding !== "ok") throw corruptError(path, String(finding));
  } finally {
    sqlite.close();
  }
}

/** Under another name until it is complete, so that a crash leaves no half of a database. */
function createDatabase(path: string, migrations: readonly string[]): void {
  const draft = `${path}.new`;
  for (const leftover of [draft, `${draft}-wal`, `${draft}-shm`, `${draft}-journal`]) rmSync(leftover, { force: true });
  closeSync(openSync(draft, "wx", 0o600));
  const sqlite = openSqlite(draft, 0);
  try {
    migrate(sqlite, migrations);
  } finally {
    sqlite.close();
  }
  // Of a database that was moved away without them: they would be taken for part of this one, and are the owner's to remove.
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${path}.moved-wal`);
  rmSync(`${path}-shm`, { force: true });
  renameSync(draft, path);
}

function openSqlite(path: string, busyTimeoutMs: number): DatabaseSync {
  const sqlite = new DatabaseSync(path, { timeout: busyTimeoutMs, enableForeignKeyConstraints: true, defensive: true });
  sqlite.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
    PRAGMA trusted_schema = OFF;
  `);
  return sqlite;
}

function migrate(sqlite: DatabaseSync, migrations: readonly string[]): void {
  for (let version = versionOf(sqlite); version < migrations.length; version += 1) {
    transact(sqlite, () => sqlite.exec(`${migrations[version]}; PRAGMA user_version = ${version + 1}`));
  }
}

function versionOf(sqlite: DatabaseSync): number {
  return Number(sqlite.prepare("PRAGMA user_version").get()?.["user_version"]);
}

function transact<Result>(sqlite: DatabaseSync, work: () => Result): Result {
  sqlite.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    sqlite.exec("COMMIT");
    return result;
  } catch (thrown) {
    // SQLite has already rolled back by itself after some failures.
    if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
    throw thrown;
  }
}
