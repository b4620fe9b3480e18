import { completeQuota, type Quota } from "@sandpiper/protocol";
import type { NodeDatabase } from "./database.ts";
import type { KeyRecord } from "./key-record.ts";

const ADD = `INSERT INTO apiKeys (id, hash, name, tenant, scopes, quota, maxNetwork, createdAt, expiresAt, revokedAt)
  VALUES (:id, :hash, :name, :tenant, :scopes, :quota, :maxNetwork, :createdAt, :expiresAt, :revokedAt)`;

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
      maxNetwork: storedNetwork(key),
      createdAt: key.createdAt.getTime(),
      expiresAt: key.expiresAt?.getTime() ?? null,
      revokedAt: key.revokedAt?.getTime() ?? null,
    });
  }

  setRevoked(id: string, at: Date): void {
    this.#database.prepare("UPDATE apiKeys SET revokedAt = :at WHERE id = :id").run({ id, at: at.getTime() });
  }

  update(key: KeyRecord): void {
    const { id, name, expiresAt, quota } = key;
    const sql = `UPDATE apiKeys SET name = :name, expiresAt = :expiresAt, quota = :quota, maxNetwork = :maxNetwork
      WHERE id = :id`;
    const changes = { id, name, expiresAt: expiresAt?.getTime() ?? null, quota: JSON.stringify(quota) };
    this.#database.prepare(sql).run({ ...changes, maxNetwork: storedNetwork(key) });
  }

  /** The quotas of tenants that have one. */
  tenantQuotas(): ReadonlyMap<string, Quota> {
    const rows = this.#database.prepare("SELECT tenant, quota FROM tenantQuotas ORDER BY tenant").all();
    return new Map(rows.map(({ tenant, quota }) => [String(tenant), completeQuota(JSON.parse(String(quota)))]));
  }

  setTenantQuota(tenant: string, quota: Quota): void {
    const sql = `INSERT INTO tenantQuotas (tenant, quota) VALUES (:tenant, :quota)
      ON CONFLICT (tenant) DO UPDATE SET quota = excluded.quota`;
    this.#database.prepare(sql).run({ tenant, quota: JSON.stringify(quota) });
  }
}

function keyFromRow(row: Record<string, unknown>): KeyRecord {
  const fields = row as Record<keyof KeyRecord, never>;
  return {
    ...fields,
    scopes: JSON.parse(fields.scopes),
    quota: completeQuota(JSON.parse(fields.quota)),
    maxNetwork: fields.maxNetwork === null ? null : JSON.parse(fields.maxNetwork),
    createdAt: new Date(fields.createdAt),
    expiresAt: fields.expiresAt === null ? null : new Date(fields.expiresAt),
    revokedAt: fields.revokedAt === null ? null : new Date(fields.revokedAt),
  };
}

function storedNetwork({ maxNetwork }: KeyRecord): string | null {
  return maxNetwork === null ? null : JSON.stringify(maxNetwork);
}
