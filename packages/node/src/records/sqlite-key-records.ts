import type { NodeDatabase } from "./database.ts";
import type { KeyRecord } from "./key-record.ts";

const ADD = `INSERT INTO apiKeys (id, hash, name, tenant, scopes, quota, createdAt, expiresAt, revokedAt)
  VALUES (:id, :hash, :name, :tenant, :scopes, :quota, :createdAt, :expiresAt, :revokedAt)`;

export class SqliteKeyRecords {
  readonly #database: NodeDatabase;

  constructor(database: NodeDatabase) {
    this.#database = database;
  }

  /** Oldest first. */
  list(): readonly KeyRecord[] {
    return this.#database.prepare("SELECT * FROM apiKeys ORDER BY rowid").all().map(keyFromRow);
  }

  add(key: KeyRecord): void {
    this.#database.prepare(ADD).run({
      ...key,
      scopes: JSON.stringify(key.scopes),
      quota: JSON.stringify(key.quota),
      createdAt: key.createdAt.getTime(),
      expiresAt: key.expiresAt?.getTime() ?? null,
      revokedAt: key.revokedAt?.getTime() ?? null,
    });
  }

  setRevoked(id: string, at: Date): void {
    this.#database.prepare("UPDATE apiKeys SET revokedAt = :at WHERE id = :id").run({ id, at: at.getTime() });
  }
}

function keyFromRow(row: Record<string, unknown>): KeyRecord {
  const fields = row as Record<keyof KeyRecord, never>;
  return {
    ...fields,
    scopes: JSON.parse(fields.scopes),
    quota: JSON.parse(fields.quota),
    createdAt: new Date(fields.createdAt),
    expiresAt: fields.expiresAt === null ? null : new Date(fields.expiresAt),
    revokedAt: fields.revokedAt === null ? null : new Date(fields.revokedAt),
  };
}
