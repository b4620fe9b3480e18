import { chmodSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { corruptError, openError, tooNewError } from "./database-error.ts";
import { lockHome } from "./home-lock.ts";
import { migrations as allMigrations } from "./migrations.ts";

/** How long a statement waits while another program, such as the sqlite3 shell, locks the file. */
const BUSY_TIMEOUT_MS = 5000;
/** Four times SQLite's default: each WAL checkpoint waits for the disk. */
const CHECKPOINT_PAGES = 4000;

/** The node's records. Committed data survives a kill -9 of the node. */
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

  /** Caches each statement forever, so build the SQL from constant parts and bind all values. */
  prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#sqlite.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** A nested transaction is part of the outer one. */
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

/** Opens or creates the database. Refuses a damaged or newer one without changing a byte of it. */
export function openDatabase(path: string, { migrations = allMigrations } = {}): NodeDatabase {
  let lock: Disposable | undefined;
  let sqlite: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    lock = lockHome(path);
    if (existsSync(path)) checkDatabase(path, migrations.length);
    else createDatabase(path, migrations);
    chmodSync(path, 0o600);
    sqlite = openSqlite(path);
    migrate(sqlite, migrations);
    return new NodeDatabase(sqlite, lock);
  } catch (thrown) {
    sqlite?.close();
    lock?.[Symbol.dispose]();
    throw openError(path, thrown);
  }
}

/** Opens the file read-only, so that a refused database stays unchanged. */
function checkDatabase(path: string, knownVersion: number): void {
  // SQLite accepts an empty file as a new database, but the node never leaves one: its content was lost.
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

/** Uses a temporary name until the database is complete, so that a crash leaves no partial database. */
function createDatabase(path: string, migrations: readonly string[]): void {
  const draft = `${path}.new`;
  for (const leftover of [draft, `${draft}-wal`, `${draft}-shm`, `${draft}-journal`]) rmSync(leftover, { force: true });
  closeSync(openSync(draft, "wx", 0o600));
  const sqlite = openSqlite(draft);
  try {
    migrate(sqlite, migrations);
  } finally {
    sqlite.close();
  }
  // Leftovers of a database that was moved away: SQLite would apply its WAL to the new database. The owner may still need it.
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${path}.moved-wal`);
  rmSync(`${path}-shm`, { force: true });
  renameSync(draft, path);
}

function openSqlite(path: string): DatabaseSync {
  const options = { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true, defensive: true };
  const sqlite = new DatabaseSync(path, options);
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
    // After some errors SQLite has already rolled back.
    if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
    throw thrown;
  }
}
