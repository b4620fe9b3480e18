import type { FlowRecord, SandboxId } from "@sandpiper/protocol";
import type { NodeDatabase } from "../records/database.ts";
import type { FlowEntry, FlowPage, FlowQuery } from "./flow-entry.ts";

/** With the requests of a connection cut to this, a log of 10,000 records stays below 160 MB. */
const MAX_RECORD_CHARACTERS = 16 * 1024;

const ADD = `INSERT INTO flowRecords (cursor, sandboxId, at, isDenied, isOpen, record)
  VALUES (:cursor, :sandboxId, :at, :isDenied, :isOpen, :record)`;
const REMOVE = "DELETE FROM flowRecords WHERE cursor = :cursor";
const REMOVE_OLDEST = `DELETE FROM flowRecords WHERE cursor IN
  (SELECT cursor FROM flowRecords WHERE sandboxId = :sandboxId ORDER BY cursor LIMIT :surplus)`;
const SET_LOG = `INSERT INTO flowLogs (sandboxId, tenant, dropped) VALUES (:sandboxId, :tenant, :dropped)
  ON CONFLICT (sandboxId) DO UPDATE SET dropped = :dropped`;
const LIST = `SELECT cursor, record FROM flowRecords
  WHERE sandboxId = :sandboxId AND cursor > :after AND isDenied >= :minDenied AND at >= :sinceMs`;

export interface FlowTableOptions {
  readonly maxPerSandbox: number;
  readonly maxPerTenant: number;
}

export interface FlowWrite extends FlowEntry {
  /** The cursor of the row that this one replaces. */
  readonly replaces?: number | undefined;
}

interface Log {
  readonly tenant: string;
  count: number;
  dropped: number;
}

/** The newest flow records of each sandbox. A sandbox that fills its tenant's share loses its own oldest records. */
export class FlowTable {
  readonly #database: NodeDatabase;
  readonly #options: FlowTableOptions;
  #logs = new Map<SandboxId, Log>();
  /** The number of records of each tenant. */
  #tenants = new Map<string, number>();

  constructor(database: NodeDatabase, options: FlowTableOptions) {
    this.#database = database;
    this.#options = options;
    this.#count();
  }

  /** The highest cursor that was ever written and is not dropped. */
  get newestCursor(): number {
    return Number(this.#database.prepare("SELECT max(cursor) AS newest FROM flowRecords").get()?.["newest"] ?? 0);
  }

  get isOpen(): boolean {
    return this.#database.isOpen;
  }

  write(writes: readonly FlowWrite[]): void {
    try {
      this.#database.transaction(() => {
        for (const write of writes) this.#add(write);
        const touched = new Set(writes.map(({ record }) => record.sandboxId));
        for (const sandboxId of touched) this.#bound(sandboxId);
      });
    } catch (thrown) {
      this.#count();
      throw thrown;
    }
  }

  /** Oldest first; with `newest`, the last ones. */
  list(sandboxId: SandboxId, query: FlowQuery & { readonly limit: number; readonly newest?: boolean }): FlowPage {
    const { after = 0, deniedOnly = false, since, limit, newest = false } = query;
    const { tenant = "", dropped = 0 } = this.#logs.get(sandboxId) ?? {};
    const values = { sandboxId, after, minDenied: deniedOnly ? 1 : 0, sinceMs: since?.getTime() ?? 0, limit };
    const rows = this.#database
      .prepare(`${LIST} ORDER BY cursor ${newest ? "DESC" : "ASC"} LIMIT :limit`)
      .all(values)
      .map((row) => ({ cursor: Number(row["cursor"]), tenant, record: recordOf(row["record"]) }));
    return { entries: newest ? rows.reverse() : rows, dropped };
  }

  /** What a process that ended left open. */
  open(): readonly FlowEntry[] {
    const rows = this.#database.prepare("SELECT cursor, record FROM flowRecords WHERE isOpen = 1").all();
    return rows.map((row) => {
      const record = recordOf(row["record"]);
      const tenant = this.#logs.get(record.sandboxId)?.tenant ?? "";
      return { cursor: Number(row["cursor"]), tenant, record };
    });
  }

  /** Sandboxes with records of which this node knows nothing else. */
  orphans(): readonly SandboxId[] {
    const sql = "SELECT sandboxId FROM flowLogs WHERE sandboxId NOT IN (SELECT id FROM sandboxes)";
    const rows = this.#database.prepare(sql).all();
    return rows.map(({ sandboxId }) => sandboxId as SandboxId);
  }

  /** Deletes what a sandbox did before an instant. */
  removeBefore(sandboxId: SandboxId, before: Date): void {
    const log = this.#logs.get(sandboxId);
    if (log === undefined) return;
    this.#database.transaction(() => {
      const values = { sandboxId, before: before.getTime() };
      const sql = "DELETE FROM flowRecords WHERE sandboxId = :sandboxId AND at < :before";
      this.#grow(log, -Number(this.#database.prepare(sql).run(values).changes));
      if (log.count > 0) return;
      this.#database.prepare("DELETE FROM flowLogs WHERE sandboxId = :sandboxId").run({ sandboxId });
      this.#logs.delete(sandboxId);
    });
  }

  #add({ cursor, replaces, tenant, record }: FlowWrite): void {
    const { sandboxId } = record;
    let log = this.#logs.get(sandboxId);
    if (log === undefined) {
      log = { tenant, count: 0, dropped: 0 };
      this.#logs.set(sandboxId, log);
      this.#database.prepare(SET_LOG).run({ sandboxId, tenant, dropped: 0 });
    }
    if (replaces !== undefined) {
      this.#grow(log, -Number(this.#database.prepare(REMOVE).run({ cursor: replaces }).changes));
    }
    this.#database.prepare(ADD).run({
      cursor,
      sandboxId,
      at: Date.parse(record.at),
      isDenied: record.decision === "denied" ? 1 : 0,
      isOpen: record.endedAt === null ? 1 : 0,
      record: textOf(record),
    });
    this.#grow(log, 1);
  }

  #bound(sandboxId: SandboxId): void {
    const { maxPerSandbox, maxPerTenant } = this.#options;
    const log = this.#logs.get(sandboxId) as Log;
    this.#drop(sandboxId, log, log.count - maxPerSandbox);
    let surplus = (this.#tenants.get(log.tenant) ?? 0) - maxPerTenant;
    if (surplus <= 0) return;
    const ofTenant = [...this.#logs].filter(([, { tenant }]) => tenant === log.tenant);
    while (surplus > 0) {
      const [victim, longest] = ofTenant.reduce((most, each) => (each[1].count > most[1].count ? each : most));
      const share = Math.min(surplus, Math.max(1, Math.ceil(longest.count / 100)));
      this.#drop(victim, longest, share);
      surplus -= share;
    }
  }

  #drop(sandboxId: SandboxId, log: Log, surplus: number): void {
    if (surplus <= 0) return;
    this.#database.prepare(REMOVE_OLDEST).run({ sandboxId, surplus });
    this.#grow(log, -surplus);
    log.dropped += surplus;
    this.#database.prepare(SET_LOG).run({ sandboxId, tenant: log.tenant, dropped: log.dropped });
  }

  #grow(log: Log, records: number): void {
    log.count += records;
    this.#tenants.set(log.tenant, (this.#tenants.get(log.tenant) ?? 0) + records);
  }

  #count(): void {
    const sql = `SELECT sandboxId, tenant, dropped,
      (SELECT count(*) FROM flowRecords WHERE flowRecords.sandboxId = flowLogs.sandboxId) AS count FROM flowLogs`;
    const rows = this.#database.prepare(sql).all() as unknown as (Log & { readonly sandboxId: SandboxId })[];
    this.#logs = new Map(rows.map(({ sandboxId, tenant, dropped }) => [sandboxId, { tenant, count: 0, dropped }]));
    this.#tenants = new Map();
    for (const { sandboxId, count } of rows) this.#grow(this.#logs.get(sandboxId) as Log, count);
  }
}

function textOf(record: FlowRecord): string {
  const text = JSON.stringify(record);
  if (text.length <= MAX_RECORD_CHARACTERS || (record.requests ?? []).length === 0) return text;
  const { requests = [] } = record;
  return textOf({ ...record, requests: requests.slice(0, Math.floor(requests.length / 2)) });
}

function recordOf(text: unknown): FlowRecord {
  return JSON.parse(text as string) as FlowRecord;
}
