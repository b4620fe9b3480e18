import { SandboxError, type SandboxId } from "@sandpiper/protocol";
import type { NodeDatabase } from "./database.ts";
import { noSuchSandbox } from "./no-such-sandbox.ts";
import { encodeCursor, parseCursor } from "./page-cursor.ts";
import {
  changeableFields,
  type DurableUsage,
  type ListedSandbox,
  type SandboxChange,
  type SandboxFilter,
  type SandboxRecord,
} from "./sandbox-record.ts";
import { recordFromRow, rowFromRecord } from "./sandbox-row.ts";

/** Bounds an answer and the memory to build it; a page has at least one sandbox. */
export const MAX_PAGE_BYTES = 2 * 1024 * 1024;

const LIVE = "state NOT IN ('destroyed', 'failed')";

/** A failed sandbox keeps only its checkpoints. */
const USAGE = [
  `count(*) FILTER (WHERE ${LIVE}) AS sandboxes`,
  ...["memoryMib", "vcpuCount", "diskMib"].map((size) => `coalesce(sum(${size}) FILTER (WHERE ${LIVE}), 0) AS ${size}`),
  "coalesce(sum(checkpointCount), 0) AS checkpoints",
  "coalesce(sum(checkpointBytes), 0) AS checkpointBytes",
].join(", ");

const UPDATE = `UPDATE sandboxes SET ${changeableFields.map((name) => `${name} = :${name}`).join(", ")} WHERE id = :id`;

/** Matches if no wanted label is missing; a wanted value of null matches any value. */
const HAS_LABELS = `NOT EXISTS (
  SELECT 1 FROM json_each(:labels) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM json_each(sandboxes.labels) AS own
    WHERE own.key = wanted.value ->> 'key' AND coalesce(wanted.value ->> 'value', own.value) = own.value))`;

/** The sequence orders sandboxes that were created in the same millisecond. */
const AFTER_CURSOR =
  "(createdAt, sequence) < (:createdAtMs, coalesce((SELECT sequence FROM sandboxes WHERE id = :lastId), 0))";

/** What only a running sandbox needs. */
const SMALL = { env: {}, metadata: {} } as const;

export class SqliteSandboxRecords {
  readonly #database: NodeDatabase;
  /** One for each field of a record. */
  readonly #columns: readonly (keyof SandboxRecord)[];

  constructor(database: NodeDatabase) {
    this.#database = database;
    const names = database
      .prepare("PRAGMA table_info(sandboxes)")
      .all()
      .map(({ name }) => name);
    this.#columns = names.filter((name) => name !== "sequence") as (keyof SandboxRecord)[];
  }

  /** Throws `already_exists` if a record has this id. */
  add(record: SandboxRecord): void {
    const values = this.#columns.map((name) => `:${name}`).join(", ");
    const sql = `INSERT INTO sandboxes (${this.#columns.join(", ")}) VALUES (${values}) ON CONFLICT (id) DO NOTHING`;
    const { changes } = this.#database.prepare(sql).run(rowFromRecord(record, this.#columns));
    if (changes === 1) return;
    throw new SandboxError("sandbox_exists", {
      message: `cannot create sandbox ${record.id}: a sandbox with this id already exists`,
    });
  }

  /** Returns the changed record. Throws `not_found`. */
  change(id: SandboxId, change: SandboxChange): SandboxRecord {
    return this.#database.transaction(() => {
      const before = this.get(id);
      if (before === undefined) throw noSuchSandbox(id);
      const after = { ...before, ...change };
      this.#database.prepare(UPDATE).run({ id, ...rowFromRecord(after, changeableFields) });
      return after;
    });
  }

  /** For a sandbox that another node owns now. */
  remove(id: SandboxId): void {
    this.#database.prepare("DELETE FROM sandboxes WHERE id = :id").run({ id });
  }

  /** With `tenant`, finds only a sandbox of that tenant. */
  get(id: SandboxId, { tenant }: { readonly tenant?: string | undefined } = {}): SandboxRecord | undefined {
    const condition = tenant === undefined ? {} : { tenant };
    const sql = `SELECT * FROM sandboxes WHERE id = :id${tenant === undefined ? "" : " AND tenant = :tenant"}`;
    const row = this.#database.prepare(sql).get({ id, ...condition });
    return row && recordFromRow(row);
  }

  /** Newest first. Without a state, lists all sandboxes that are not destroyed. */
  list(filter: SandboxFilter): { readonly items: readonly ListedSandbox[]; readonly nextCursor: string | null } {
    const { condition, values } = conditionOf(filter);
    const columns = this.#columns.filter((name) => name !== "env").join(", ");
    const rows = this.#database
      .prepare(
        `SELECT ${columns}, recordBytes - octet_length(env) AS recordBytes FROM sandboxes
          WHERE ${condition} ORDER BY createdAt DESC, sequence DESC LIMIT :rows`,
      )
      .iterate({ ...values, rows: filter.limit + 1 });
    const items: ListedSandbox[] = [];
    let bytes = 0;
    let isMore = false;
    for (const row of rows) {
      bytes += Number(row["recordBytes"]);
      isMore = items.length === filter.limit || (items.length > 0 && bytes > MAX_PAGE_BYTES);
      if (isMore) break;
      items.push(recordFromRow(row));
    }
    const last = isMore ? items.at(-1) : undefined;
    return { items, nextCursor: last ? encodeCursor({ createdAtMs: last.createdAt.getTime(), id: last.id }) : null };
  }

  /** All sandboxes that are neither destroyed nor failed. */
  live(): readonly SandboxRecord[] {
    const sql = `SELECT * FROM sandboxes WHERE state <> 'destroyed' AND ${LIVE} ORDER BY createdAt, sequence`;
    return this.#database.prepare(sql).all().map(recordFromRow);
  }

  /** The live sandbox of a tenant with this name. */
  named(tenant: string, name: string): SandboxId | undefined {
    const sql = `SELECT id FROM sandboxes WHERE tenant = :tenant AND name = :name AND name IS NOT NULL AND ${LIVE}`;
    return this.#database.prepare(sql).get({ tenant, name })?.["id"] as SandboxId | undefined;
  }

  /** What the sandboxes of a key or a tenant use of its quota. */
  usage(payer: { readonly keyId: string } | { readonly tenant: string }): DurableUsage {
    const [column, name] = "keyId" in payer ? ["keyId", payer.keyId] : ["tenant", payer.tenant];
    const sql = `SELECT ${USAGE} FROM sandboxes WHERE ${column} = :name AND state <> 'destroyed'`;
    return { ...(this.#database.prepare(sql).get({ name: name as string }) as unknown as DurableUsage) };
  }

  /** The size of a tenant's records, without those of destroyed sandboxes. */
  bytesOf(tenant: string): number {
    const sql =
      "SELECT coalesce(sum(recordBytes), 0) AS bytes FROM sandboxes WHERE tenant = :tenant AND state <> 'destroyed'";
    return Number(this.#database.prepare(sql).get({ tenant })?.["bytes"]);
  }

  /** Deletes the oldest records of a tenant's destroyed sandboxes until the newer ones fit. */
  trimDestroyed(tenant: string, maxBytes: number): void {
    const newestFirst = `SELECT sequence, sum(recordBytes) OVER (ORDER BY sequence DESC) AS bytes
      FROM sandboxes WHERE tenant = :tenant AND state = 'destroyed'`;
    const sql = `DELETE FROM sandboxes WHERE sequence IN (SELECT sequence FROM (${newestFirst}) WHERE bytes > :maxBytes)`;
    this.#database.prepare(sql).run({ tenant, maxBytes });
  }

  /** Records that a sandbox never became ready, and keeps only a small record of it. */
  failCreation(id: SandboxId, change: SandboxChange): SandboxRecord {
    return this.#database.transaction(() => {
      const after = this.change(id, { ...change, ...SMALL });
      const values = { id, tenant: after.tenant, failedAt: after.endedAt?.getTime() ?? 0 };
      this.#database
        .prepare("INSERT OR IGNORE INTO failedCreations (sandboxId, tenant, failedAt) VALUES (:id, :tenant, :failedAt)")
        .run(values);
      return after;
    });
  }

  hasFailedCreation(id: SandboxId): boolean {
    return this.#database.prepare("SELECT 1 FROM failedCreations WHERE sandboxId = :id").get({ id }) !== undefined;
  }

  /** Of a tenant's sandboxes that never became ready, all but the newest. */
  failedCreations(tenant: string, { except }: { readonly except: number }): readonly SandboxId[] {
    const sql = `SELECT sandboxId FROM failedCreations WHERE tenant = :tenant
      ORDER BY failedAt DESC, sandboxId LIMIT -1 OFFSET :except`;
    const rows = this.#database.prepare(sql).all({ tenant, except });
    return rows.map(({ sandboxId }) => sandboxId as SandboxId);
  }

  /** Deletes the records of sandboxes that ended before this instant, and returns their number. */
  prune(endedBefore: Date): number {
    const sql = "DELETE FROM sandboxes WHERE endedAt < :endedBefore AND state IN ('destroyed', 'failed')";
    return Number(this.#database.prepare(sql).run({ endedBefore: endedBefore.getTime() }).changes);
  }
}

function conditionOf({ tenant, state, provider, name, labels, cursor }: SandboxFilter) {
  // Redundant for most wanted states, but SQLite needs this term to use the index of present sandboxes.
  const conditions = state === "destroyed" ? [] : ["state <> 'destroyed'"];
  const values: Record<string, string | number> = {};
  for (const [column, value] of Object.entries({ tenant, state, provider, name })) {
    if (value === undefined) continue;
    conditions.push(`${column} = :${column}`);
    values[column] = value;
  }
  if (labels !== undefined && labels.length > 0) {
    conditions.push(HAS_LABELS);
    values["labels"] = JSON.stringify(labels);
  }
  if (cursor !== undefined) {
    const { createdAtMs, id } = parseCursor(cursor);
    conditions.push(AFTER_CURSOR);
    values["createdAtMs"] = createdAtMs;
    values["lastId"] = id;
  }
  return { condition: conditions.join(" AND "), values };
}
